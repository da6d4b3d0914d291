"""`history`: show a saved run from its checkpoints, also one that was interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import SimpleNamespace as Options
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot
from rich.console import Console
from rich.text import Text

from ..agent.channels import calls_left
from ..agent.graph import create_gecko_agent
from ..display.drafts import Draft, follow_up
from ..display.live import show, show_opening
from ..display.words import clean, counted, cut, format_execution, format_value, format_verdict, prose
from ..errors import GeckoError
from ..graph import Gecko, create_gecko
from ..models.recorded import RecordedModel
from ..state import Attempt, JsonObject, Rehearsal
from ..tools import Toolkit, ToolSpec
from ..values.origins import blame
from ..world.turn import human_turns, task_of
from . import saving
from .options import check_files
from .screen import screen

TASK_CHARS = 80
KEYS_SHOWN = 12


def history(options: Options) -> int:
    """Show a thread, or list the threads."""
    console = screen()
    if options.thread is None and (option := next((key for key in ("html", "blame") if getattr(options, key)), None)):
        raise GeckoError(f"--{option} needs THREAD: the run that it is about")
    check_files([("FILE", options.file)], {"--html": options.html})
    with saving.reader(options.file) as saver:
        names = saving.threads(saver)
        if options.thread is None:
            show_threads(saver, names, options.file, console)
            return 0
        saving.check_thread(saver, options.file, options.thread)
        turns = list(read_turns(saver, options.thread))
    if not turns:
        raise GeckoError(
            f"{options.file}: the thread {options.thread!r} holds no rehearsal: it was interrupted before the "
            "first step, or another graph has written it"
        )
    if options.blame is not None:
        records = [turn.rehearsal for turn in turns if turn.rehearsal is not None]
        found = blame(records, options.blame, state=turns[0].start_state or {}) if records else None
        if found is None:
            why = "nothing ever stood there" if records else "no rehearsal of this thread is over"
            raise GeckoError(f"--blame {options.blame}: {why}")
        console.print(Text(clean(f"{options.blame}: {json.dumps(found, ensure_ascii=False)}")))
        return 0
    show_turns(turns, options, console)
    return 0


def show_turns(turns: Sequence[SavedTurn], options: Options, console: Console) -> None:
    """Print a thread's turns, and write its page."""
    for number, turn in enumerate(turns, 1):
        show_turn(turn, number, console)
    for tool, count in turns[-1].fidelity.items():
        calls = counted(count["calls"], "real call")
        console.print(Text(f"{clean(tool)}: {calls} in this thread, {count['drifted']} drifted", "dim"))
    if options.html:
        write_page(options.html, turns, title=options.thread)


def write_page(target: str, turns: Sequence[SavedTurn], *, title: str) -> None:
    """Write a thread's turns as one HTML page."""
    from ..display.page import Turn, html_page  # here, because only `--html` needs the templates

    pages = []
    for turn in turns:
        record = {**(turn.rehearsal or {"attempts": [*turn.attempts, *turn.open_attempts]}), **turn.follow_up}
        note = f"{turn.started_at} UTC, {turn.seconds:.1f} s" if turn.started_at else ""
        pages.append(Turn(record, turn.task, turn.start_state, note))
    saving.write_text("--html", target, html_page(*pages, title=title))


def show_threads(saver: SqliteSaver, names: list[str], file: str, console: Console) -> None:
    """Print a file's threads, the last written first: time, turns, result, task."""
    console.print(Text(f"{file}: {counted(len(names), 'run') if names else 'no runs'}"))
    gecko, agent, shown = _build_reader(saver), _build_agent_reader(saver), names[: saving.SHOWN]
    width = max(map(len, shown), default=0)
    for name in shown:
        config: RunnableConfig = {"configurable": {"thread_id": name}}
        now = agent.get_state(config)
        now = now if "preview" in now.values else gecko.get_state(config)
        console.print(Text.assemble((f"{clean(name):<{width}}", "bold"), f"  {_format_time(now)}  {_summarize(now)}"))
    if len(names) > len(shown):
        console.print(Text(f"and {len(names) - len(shown)} more"))


def _summarize(now: StateSnapshot) -> str:
    messages, rehearsal = now.values.get("messages", []), now.values.get("rehearsal")
    if not (now.values.get("ledger") or rehearsal) or not human_turns(messages):
        return "no rehearsal"
    end = "not over" if now.tasks or rehearsal is None else format_verdict(rehearsal["verdict"])
    if not now.tasks and now.values.get("execution"):
        end = f"{end}; {format_execution(now.values['execution'])}"
    task = clean(cut(task_of(messages), TASK_CHARS))
    return f"{counted(human_turns(messages), 'turn')}, {end}: {task}"


@dataclass(frozen=True, slots=True)
class SavedTurn:
    """One saved turn."""

    task: str
    attempts: list[Attempt]
    open_attempts: list[Draft]
    rehearsal: Rehearsal | None
    checkpoints: int
    saved_at: str
    started_at: str = ""
    seconds: float = 0.0
    start_state: JsonObject | None = None
    follow_up: JsonObject = field(default_factory=dict)
    fidelity: dict[str, dict[str, int]] = field(default_factory=dict)
    resume: str = "`gecko-graph run ... --resume` continues here"


def show_given(console: Console, state: JsonObject) -> None:
    """Print the given start state, a line for each key."""
    lines = [f"{key}: {format_value(value)}" for key, value in list(state.items())[:KEYS_SHOWN]]
    lines += [f"and {len(state) - KEYS_SHOWN} more keys"] if len(state) > KEYS_SHOWN else []
    show_opening(console, (("given", line) for line in lines))


def show_turn(turn: SavedTurn, number: int, console: Console) -> None:
    """Print one turn."""
    console.print(Text.assemble((f"Turn {number}", "bold"), f"  {prose(turn.task)}"))
    console.print(Text(f"{counted(turn.checkpoints, 'checkpoint')}, the last one of {turn.saved_at}", "dim"))
    if number == 1 and turn.start_state and turn.rehearsal is not None:
        supposed = turn.rehearsal.get("supposed_state")
        made_up = supposed["state"] if supposed else {}
        show_given(console, {key: value for key, value in turn.start_state.items() if key not in made_up})
    record = {**(turn.rehearsal or {}), **turn.follow_up}
    show(console, [*map(dict, turn.attempts), *turn.open_attempts], record or None, waiting="interrupted here")
    if turn.rehearsal is None:
        console.print(Text(f"not over: {turn.resume}", "yellow"))


def read_turns(saver: BaseCheckpointSaver[str], thread: str) -> Iterator[SavedTurn]:
    """Yield the turns of a thread in order; of a graph that embeds the rehearsal, its finished rehearsals."""
    gecko, agent = _build_reader(saver), _build_agent_reader(saver)
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    if _is_agents(agent.get_state(config)):
        yield from _read_agent(agent, config)
        return
    by_turn: dict[int, list[StateSnapshot]] = {}
    snapshots = list(gecko.get_state_history(config))
    if not any(snapshot.values.get("ledger") for snapshot in snapshots):
        yield from _read_embedded(list(agent.get_state_history(config))[::-1])
    for snapshot in snapshots:
        ledger = snapshot.values.get("ledger")
        if ledger and not _opens_turn(snapshot):
            by_turn.setdefault(ledger["turn"], []).append(snapshot)
    now = gecko.get_state(config, subgraphs=True)
    for turn in sorted(by_turn):
        is_newest = by_turn[turn][0].config == now.config
        yield _build_turn(by_turn[turn], _open_attempts(now) if is_newest else [])


def _read_embedded(snapshots: Sequence[StateSnapshot]) -> Iterator[SavedTurn]:
    """Yield the rehearsals in a parent's own checkpoints, which keep results under the key `rehearsal`."""
    finished = [
        entry for entry in snapshots if entry.values.get("rehearsal") and human_turns(entry.values.get("messages", []))
    ]
    for _, group in groupby(finished, key=lambda entry: entry.values["rehearsal"]):
        equal = list(group)
        first, rehearsal = equal[0], equal[0].values["rehearsal"]
        done = equal[-1].values.get("execution") or {}
        is_own = done.get("turn") == human_turns(first.values["messages"])
        yield SavedTurn(
            task=task_of(first.values["messages"]),
            attempts=rehearsal["attempts"],
            open_attempts=[],
            rehearsal=rehearsal,
            checkpoints=len(equal),
            saved_at=_format_time(equal[-1]),
            follow_up={"execution": done} if is_own else {},
            fidelity=done.get("fidelity", {}),
        )


def _is_agents(now: StateSnapshot) -> bool:
    """Return whether an agent has written a thread; one whose first rehearsal is not over has no preview yet."""
    return "preview" in now.values or ("rehearsal" not in now.values and now.next in (("open_turn",), ("rehearse",)))


def _read_agent(agent: Gecko, config: RunnableConfig) -> Iterator[SavedTurn]:
    """Yield an agent's turns: all attempts of a turn's rehearsals, and what was really done."""
    by_turn: dict[int, list[StateSnapshot]] = {}
    for snapshot in agent.get_state_history(config):
        if (number := human_turns(snapshot.values.get("messages", []))) and not _opens_turn(snapshot):
            by_turn.setdefault(number, []).append(snapshot)
    now = agent.get_state(config, subgraphs=True)
    for number in sorted(by_turn):
        begun = [each for each in by_turn[number] if each.values.get("turn") == number and each.values["rehearsals"]]
        is_newest = by_turn[number][0].config == now.config
        yield _build_agent_turn(by_turn[number], begun, now if is_newest else None)


def _build_agent_turn(
    snapshots: list[StateSnapshot], begun: Sequence[StateSnapshot], now: StateSnapshot | None
) -> SavedTurn:
    """Return an agent's turn: `begun` are its snapshots from the first rehearsal on, `now` its open end."""
    turn = _build_turn(snapshots, _open_attempts(now) if now else [])
    turn = replace(turn, rehearsal=None, resume="`gecko-graph do` goes on here; in Python the agent, invoked with None")
    if not begun:
        return turn
    values: Any = begun[0].values
    rehearsals: list[Rehearsal] = [entry.values["rehearsal"] for entry in begun[::-1]]
    attempts = {attempt["number"]: attempt for rehearsal in rehearsals for attempt in rehearsal["attempts"]}
    listed = [*attempts.values()]
    return replace(
        turn,
        attempts=listed,
        rehearsal={**rehearsals[-1], "attempts": listed},
        start_state=values["turn_start_state"],
        follow_up=_follow_agent(values, now),
        fidelity=values.get("fidelity") or {},
    )


def _follow_agent(values: Any, now: StateSnapshot | None) -> JsonObject:
    """Return what followed a turn's rehearsal; of a turn that is not over what is asked, and the calls so far."""
    done = values.get("execution") or {}
    if done.get("turn") == values["turn"]:
        return {"execution": done}
    left = [planned["call"] for planned in calls_left(values)]
    execution = {"status": "", "calls": values["journal"], "left": left}
    asked = follow_up({"__interrupt__": now.interrupts}) if now else {}
    return {**asked, **({"execution": execution} if values["journal"] else {})}


def _opens_turn(snapshot: StateSnapshot) -> bool:
    """Return True if a turn's input is saved, but the ledger is still that of the turn before."""
    source = (snapshot.metadata or {}).get("source")
    return source == "input" or any(task.name == "bootstrapper" for task in snapshot.tasks)


def _build_turn(snapshots: Sequence[StateSnapshot], open_attempts: list[Draft]) -> SavedTurn:
    newest, oldest = snapshots[0], snapshots[-1]
    values = newest.values
    times = [datetime.fromisoformat(each.created_at) for each in (oldest, newest) if each.created_at]
    attempts = values.get("attempts", [])
    rehearsal = values.get("rehearsal")
    over = rehearsal is not None and bool(attempts) and not newest.tasks and rehearsal["attempts"] == attempts
    return SavedTurn(
        task=task_of(values["messages"]),
        attempts=attempts,
        open_attempts=open_attempts,
        rehearsal=rehearsal if over else None,
        checkpoints=len(snapshots),
        saved_at=_format_time(newest),
        started_at=_format_time(oldest),
        seconds=(times[-1] - times[0]).total_seconds() if times else 0.0,
        start_state=oldest.values.get("task_state"),
    )


def _format_time(snapshot: StateSnapshot) -> str:
    return (snapshot.created_at or "").partition(".")[0].replace("T", " ")


def _open_attempts(snapshot: StateSnapshot) -> list[Draft]:
    """Return the running attempts, from their own checkpoints (`attempt:<task id>`) at any depth."""
    drafts: list[Draft] = []
    for task in snapshot.tasks:
        inner = task.state
        if isinstance(inner, StateSnapshot):
            is_attempt = "number" in inner.values
            judged_inside = inner.values.get("attempts", [])
            drafts += [_build_draft(inner.values)] if is_attempt else [*judged_inside, *_open_attempts(inner)]
    judged = {attempt["number"] for attempt in snapshot.values.get("attempts", [])}
    return drafts + [entry for entry in snapshot.values.get("attempts_to_judge", []) if entry["number"] not in judged]


def _build_draft(values: JsonObject) -> Draft:
    """Return an attempt's record so far: its steps, and the calls that are not answered yet."""
    proposed = [{"call": proposal["call"]} for proposal in values.get("proposals", [])]
    unanswered = [{"call": call} for call in values.get("pending", [])]
    answer = {key: values[key] for key in ("answer",) if values.get(key)}
    steps: list[Any] = [*values.get("steps", []), *proposed, *unanswered]
    return {"number": values["number"], "start_digest": values["start_digest"], "steps": steps, **answer}


def _build_agent_reader(saver: BaseCheckpointSaver[str]) -> Gecko:
    return create_gecko_agent(Toolkit([ToolSpec(name="none", real=dict)]), model=RecordedModel(), checkpointer=saver)


def _build_reader(saver: BaseCheckpointSaver[str]) -> Gecko:
    """Return a graph that only reads checkpoints; they do not depend on its tools."""
    return create_gecko(Toolkit([ToolSpec(name="none")]), model=RecordedModel(), checkpointer=saver)
