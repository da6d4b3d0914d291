"""Saved runs: an SQLite file with one thread per run; `history` shows them, also interrupted ones."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START
from langgraph.types import StateSnapshot
from rich.console import Console
from rich.text import Text

from ..agent.channels import calls_left
from ..agent.graph import create_gecko_agent
from ..create import create_gecko
from ..display.live import show
from ..display.records import Draft, PageTurn, follow_up
from ..display.rows import ViewRow, list_expected, list_state
from ..display.words import clean, counted, cut, format_execution, format_verdict, prose
from ..errors import GeckoError
from ..graph import Gecko
from ..models.node import open_record
from ..models.recorded import RecordedModel
from ..state import JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.origins import blame
from ..world.turn import human_turns, task_of
from .inputs import OUTPUTS, check_files, screen, write_text

SHOWN = 20
TASK_CHARS = 80
KEYS_SHOWN = 12
COMMAND = "gecko_command"
"""Key in the metadata of a run with real calls: its options without credentials, from which `do` continues it."""


@contextmanager
def open_saver(path: str, *, new: bool) -> Iterator[SqliteSaver]:
    """Open a saver that writes to a file, which may be `new`. Raises GeckoError, also for another program's file."""
    if not new and not Path(path).is_file():
        raise GeckoError(f"{path}: no such file: no run to resume")
    with _translate_errors(path), closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables and "checkpoints" not in tables:
            raise GeckoError(f"{path}: not a file of saved runs: it has another program's tables; give another file")
        saver.setup()
        try:
            yield saver
        finally:
            saver.lock.acquire()  # for good: the thread of an interrupted run may still try to write


@contextmanager
def open_reader(path: str) -> Iterator[SqliteSaver]:
    """Open a saver that only reads. Raises GeckoError if there is no file of saved runs."""
    file = Path(path)
    if not file.is_file():
        raise GeckoError(f"{path}: no such file; `gecko-graph run ... --save {path}` creates one")
    # without a writing process, reading creates no `-wal` or `-shm` file either
    immutable = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    address = f"{file.resolve().as_uri()}?mode=ro{immutable}"
    with _translate_errors(path), closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        saver.is_setup = True  # the setup would write
        yield saver


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        is_foreign = "not a database" in str(error) or "no such table" in str(error)
        raise GeckoError(f"{path}: {'not a file of saved runs' if is_foreign else error}") from None


def list_threads(saver: SqliteSaver) -> list[str]:
    """Return the names of a file's threads, newest first."""
    with saver.cursor(transaction=False) as cursor:
        cursor.execute("SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC")
        return [str(row[0]) for row in cursor.fetchall()]


def check_thread(saver: SqliteSaver, file: str, thread: str) -> None:
    """Raise GeckoError, with the existing names, if a file has no thread of this name."""
    names = list_threads(saver)
    if thread not in names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        known = f"{', '.join(map(repr, names[:SHOWN]))}{more}" if names else "no runs"
        raise GeckoError(f"{file}: no thread {thread!r}; it has {known}")


def describe_command(options: Options) -> dict[str, str]:
    """Return the metadata by which `do` continues a run."""
    return {COMMAND: json.dumps({**vars(options), **dict.fromkeys(OUTPUTS), "folder": os.getcwd()})}


def read_command(saver: SqliteSaver, thread: str) -> Any:
    """Return the options to continue a thread with; None if no command with real calls wrote it."""
    known = saver.get_tuple({"configurable": {"thread_id": thread}})
    return json.loads(dict[str, Any](known.metadata if known else {}).get(COMMAND, "null"))


# what is shown ---------------------------------------------------------------------------------------


def history(options: Options) -> int:
    console = screen()
    if options.thread is None and (option := next((key for key in ("html", "blame") if getattr(options, key)), None)):
        raise GeckoError(f"--{option} needs THREAD, the run's name")
    check_files([("FILE", options.file)], {"--html": options.html})
    with open_reader(options.file) as saver:
        if options.thread is None:
            _show_threads(saver, options.file, console)
            return 0
        check_thread(saver, options.file, options.thread)
        turns = list(read_turns(saver, options.thread))
    if not turns:
        raise GeckoError(
            f"{options.file}: the thread {options.thread!r} has no rehearsal: it was interrupted before the "
            "first step, or another graph wrote it"
        )
    if options.blame is not None:
        console.print(Text(clean(_find_blame(turns, options.blame))))
        return 0
    for number, turn in enumerate(turns, 1):
        _show_turn(turn, number, console)
    for tool, count in turns[-1].fidelity.items():
        calls = counted(count["calls"], "real call")
        console.print(Text(f"{clean(tool)}: {calls} in this thread, {count['drifted']} drifted", "dim"))
    if options.html:
        write_page(options.html, turns, title=options.thread)
    return 0


def write_page(target: str, turns: Sequence[PageTurn], *, title: str) -> None:
    from ..display.page import html_page  # here, because only `--html` needs the templates

    write_text("--html", target, html_page(*turns, title=title))


def list_given(state: JsonObject) -> list[ViewRow]:
    """Return the rows of a given start state; further keys are only counted."""
    rows = list(list_state(state))
    left = len(rows) - KEYS_SHOWN
    return [*rows[:KEYS_SHOWN], *([ViewRow("given", f"and {left} more keys")] if left > 0 else [])]


def _find_blame(turns: Sequence[SavedTurn], path: str) -> str:
    records: Any = [turn.record for turn in turns if "verdict" in turn.record]
    found = blame(records, path, state=turns[0].start_state or {}) if records else None
    if found is None:
        why = "no value was ever there" if records else "no rehearsal of this thread is finished"
        raise GeckoError(f"--blame {path}: {why}")
    return f"{path}: {json.dumps(found, ensure_ascii=False)}"


def _show_threads(saver: SqliteSaver, file: str, console: Console) -> None:
    """Print a file's threads, newest first: time, turns, result, task."""
    names = list_threads(saver)
    console.print(Text(f"{file}: {counted(len(names), 'run') if names else 'no runs'}"))
    width = max(map(len, names[:SHOWN]), default=0)
    for name in names[:SHOWN]:
        config: RunnableConfig = {"configurable": {"thread_id": name}}
        now = _choose_reader(saver, config).get_state(config)
        console.print(Text.assemble((f"{clean(name):<{width}}", "bold"), f"  {_format_time(now)}  {_summarize(now)}"))
    if len(names) > SHOWN:
        console.print(Text(f"and {len(names) - SHOWN} more"))


def _summarize(now: StateSnapshot) -> str:
    messages, rehearsal = now.values.get("messages", []), now.values.get("rehearsal")
    if not (now.values.get("bookkeeping") or rehearsal) or not human_turns(messages):
        return "no rehearsal"
    end = "not finished" if now.tasks or rehearsal is None else format_verdict(rehearsal["verdict"])
    if not now.tasks and now.values.get("execution"):
        end = f"{end}; {format_execution(now.values['execution'])}"
    task = clean(cut(task_of(messages), TASK_CHARS))
    return f"{counted(human_turns(messages), 'turn')}, {end}: {task}"


def _show_turn(turn: SavedTurn, number: int, console: Console) -> None:
    console.print(Text.assemble((f"Turn {number}", "bold"), f"  {prose(turn.task)}"))
    console.print(Text(turn.note, "dim"))
    record = turn.record
    made_up = (record.get("supposed_state") or {}).get("state", {})
    is_first = number == 1 and "verdict" in record
    given = {key: value for key, value in (turn.start_state or {}).items() if is_first and key not in made_up}
    opening = [*list_given(given), *list_expected(record.get("checklist") or ())]
    show(console, record, opening=opening, waiting="interrupted here")
    if turn.resume:
        console.print(Text(f"not finished: {turn.resume}", "yellow"))


# what checkpoints hold -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SavedTurn(PageTurn):
    """A saved turn, with the command that continues an unfinished one, and the thread's real calls by tool."""

    resume: str = ""
    fidelity: dict[str, dict[str, int]] = field(default_factory=dict)


def read_turns(saver: BaseCheckpointSaver[str], thread: str) -> Iterator[SavedTurn]:
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    graph = _choose_reader(saver, config)
    by_turn: dict[int, list[StateSnapshot]] = {}
    for snapshot in graph.get_state_history(config):
        number = human_turns(snapshot.values.get("messages", []))
        if number and not _opens_turn(snapshot):
            by_turn.setdefault(number, []).append(snapshot)
    now = graph.get_state(config, subgraphs=True)
    for number, snapshots in sorted(by_turn.items()):
        end = now if snapshots[0].config == now.config else None
        if _is_agents(now):
            yield _build_agent_turn(snapshots, end, number)
        elif snapshots[0].values.get("bookkeeping"):
            yield _build_turn(snapshots, end)
        elif rehearsal := snapshots[0].values.get("rehearsal"):  # of a graph that embeds the rehearsal
            done = snapshots[0].values.get("execution") or {}
            record = {**rehearsal, **({"execution": done} if done.get("turn") == number else {})}
            yield SavedTurn(record, task_of(snapshots[0].values["messages"]), None, _note(snapshots))


@cache
def _readers() -> list[Gecko]:
    """Return two graphs that only read checkpoints, an agent and a rehearsal; both work without the run's tools."""
    tools, model = Toolkit([ToolSpec(name="none", real=dict)]), RecordedModel()
    readers: list[Any] = [create_gecko_agent(tools, model=model), create_gecko(tools, model=model)]
    for reader in readers:
        reader.nodes[START].mapper = None  # another graph's input may have other keys
    return readers


def _choose_reader(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Gecko:
    agent, rehearsal = (reader.copy({"checkpointer": saver}) for reader in _readers())
    now = agent.get_state(config)
    return rehearsal if now.values.get("bookkeeping") and not _is_agents(now) else agent


def _is_agents(now: StateSnapshot) -> bool:
    """Return whether an agent wrote the thread; during its first rehearsal it has no preview yet."""
    return "preview" in now.values or ("rehearsal" not in now.values and now.next in (("open_turn",), ("rehearse",)))


def _opens_turn(snapshot: StateSnapshot) -> bool:
    """Return True if the turn's input is saved, but the other keys are still those of the previous turn."""
    source = (snapshot.metadata or {}).get("source")
    return source == "input" or any(task.name == "bootstrapper" for task in snapshot.tasks)


def _build_turn(snapshots: Sequence[StateSnapshot], now: StateSnapshot | None) -> SavedTurn:
    """Return the turn of a rehearsal; `now` is the newest checkpoint if the turn is the last."""
    newest, values = snapshots[0], snapshots[0].values
    begun = next((each for each in reversed(snapshots) if not _opens_turn(each)), snapshots[-1])  # with full state
    attempts, rehearsal = values.get("attempts", []), values.get("rehearsal")
    is_over = rehearsal is not None and bool(attempts) and not newest.tasks and rehearsal["attempts"] == attempts
    record: Any = {**((rehearsal or {}) if is_over else {}), "attempts": [*attempts, *(_list_open(now) if now else [])]}
    resume = "" if is_over else "`gecko-graph run ... --resume` continues here"
    return SavedTurn(record, task_of(values["messages"]), begun.values.get("task_state"), _note(snapshots), resume)


def _build_agent_turn(snapshots: Sequence[StateSnapshot], now: StateSnapshot | None, number: int) -> SavedTurn:
    """Return a turn of an agent: all attempts of its rehearsals, and the real calls."""
    known: list[Any] = [open_record(each.values) for each in snapshots]
    begun = [each for each in known if each.get("turn") == number and each["rehearsals"]]
    task, note = task_of(snapshots[0].values["messages"]), _note(snapshots)
    if not begun:
        again = "`gecko-graph do` continues here; in Python, invoke the agent with None"
        return SavedTurn({"attempts": _list_open(now) if now else []}, task, None, note, again)
    values: Any = begun[0]
    attempts = {each["number"]: each for entry in begun[::-1] for each in entry["rehearsal"]["attempts"]}
    record = {**values["rehearsal"], "attempts": [*attempts.values(), *(_list_open(now) if now else [])]}
    record |= _follow_agent(values, now)
    return SavedTurn(record, task, values["turn_start_state"], note, "", values.get("fidelity") or {})


def _follow_agent(values: Any, now: StateSnapshot | None) -> JsonObject:
    """Return the real calls after a turn's rehearsal, and if it is unfinished its open question."""
    done = values.get("execution") or {}
    if done.get("turn") == values["turn"]:
        return {"execution": done}
    left = [planned["call"] for planned in calls_left(values)]
    execution = {"status": "", "calls": values["journal"], "left": left}
    asked = follow_up({"__interrupt__": now.interrupts}) if now else {}
    return {**asked, **({"execution": execution} if values["journal"] else {})}


def _list_open(snapshot: StateSnapshot) -> list[Draft]:
    """Return the running attempts, from their own checkpoints (`attempt:<task id>`) at any depth."""
    drafts: list[Draft] = []
    for task in snapshot.tasks:
        if isinstance(inner := task.state, StateSnapshot):
            values, judged_inside = open_record(inner.values), inner.values.get("attempts", [])
            drafts += [_build_draft(values)] if "number" in values else [*judged_inside, *_list_open(inner)]
    judged = {attempt["number"] for attempt in snapshot.values.get("attempts", [])}
    ended = snapshot.values.get("bookkeeping", {}).get("attempts_to_judge", [])
    return drafts + [each for each in ended if each["number"] not in judged]


def _build_draft(values: JsonObject) -> Draft:
    """Return the record of an unfinished attempt: its steps, and the calls without an answer."""
    unanswered = [*(proposal["call"] for proposal in values.get("proposals", [])), *values.get("pending", [])]
    steps = [*values.get("steps", []), *({"call": call} for call in unanswered)]
    answer = {"answer": values["answer"]} if values.get("answer") else {}
    return {"number": values["number"], "start_digest": values["start_digest"], "steps": steps, **answer}


def _note(snapshots: Sequence[StateSnapshot]) -> str:
    """Return the turn's start time and duration."""
    times = [datetime.fromisoformat(each.created_at or "") for each in (snapshots[-1], snapshots[0])]
    return f"{_format_time(snapshots[-1])} UTC, {(times[1] - times[0]).total_seconds():.1f} s"


def _format_time(snapshot: StateSnapshot) -> str:
    return (snapshot.created_at or "").partition(".")[0].replace("T", " ")
