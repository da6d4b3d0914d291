"""Run a scenario: its turns in order on one thread, whose checkpoints record digests of the scenario."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Checkpointer, Command, Durability, StateSnapshot

from ..agent.graph import create_gecko_agent
from ..conversation.scenario import Scenario
from ..errors import ScenarioError
from ..events import Reader, stream_options
from ..graph import Gecko
from ..models.factory import ModelsLike
from ..state import ROLES, Role
from ..tools import Toolkit
from ..values.digest import digest
from ..values.notes import notes_of, tell
from ..world.turn import human_turns, task_of

OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
OnTurn: TypeAlias = Callable[[str], None]


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    model: ModelsLike = None,
    checkpointer: Checkpointer = None,
    thread_id: str | None = None,
    on_event: OnEvent | None = None,
) -> list[dict[str, Any]]:
    """Run all turns of a scenario on one thread.

    Args:
        scenario: The case, or its file.
        model: Replaces all recorded replies; `Models` replaces those of its roles.
        checkpointer: Saves the checkpoints; by default in memory.
        thread_id: The thread's name; by default the scenario's.
        on_event: Called with each event (`events.py`) as it happens.

    Returns:
        The graph's output of each turn, `{"messages", "rehearsal", "task_state"}`.

    Raises:
        ScenarioError: The file cannot be read, the thread already contains a run, or there is no planner.
        ModelError: A model cannot be built.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario)
    saver = checkpointer or InMemorySaver()
    gecko = scenario.gecko(model=model, checkpointer=saver)
    return list(play(scenario, gecko, thread_id=thread_id or scenario.name, on_event=on_event))


def compose_agent(scenario: Scenario, *, model: ModelsLike = None, checkpointer: Checkpointer = None) -> Gecko:
    """Return the agent of a scenario, which rehearses, asks about its calls and then makes them.

    Arguments and errors are those of `Scenario.gecko`.
    """
    models, knobs = scenario.bind(model)
    return create_gecko_agent(scenario.tools, model=models, context=knobs, checkpointer=checkpointer, derive=False)


def play(
    scenario: Scenario,
    gecko: Gecko,
    *,
    thread_id: str,
    on_event: OnEvent | None = None,
    on_turn: OnTurn | None = None,
    resume: bool | Command[Any] = False,
    durability: Durability | None = None,
) -> Iterator[dict[str, Any]]:
    """Run a scenario's turns in order on its graph, which has a checkpointer, and yield the output of each.

    With `resume` an interrupted or unfinished thread continues; a last turn in which no model replied is run again. The
    turns end at an agent's question; a `Command` as `resume` answers it. `on_turn` is called with the user's message
    when a turn starts or resumes. The durability `sync` loses nothing if the process dies.

    Raises:
        ScenarioError: The thread to resume does not exist, or was made from another scenario; or it exists and `resume`
            is False.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    snapshot = gecko.get_state(config)
    config["metadata"] = metadata = identify(scenario, snapshot, thread_id, resume=bool(resume))
    announce = on_turn or (lambda task: None)
    run = partial(_run, gecko, on_event=on_event, durability=durability)
    messages, output = snapshot.values.get("messages", []), dict[str, Any]()
    if resume and (snapshot.tasks or unanswered(snapshot.values)):
        announce(task_of(messages) if messages else scenario.turns[0].user)
        if not snapshot.tasks:
            history = gecko.get_state_history(config, filter={"source": "input"})
            config = {**next(iter(history)).config, "metadata": metadata}
        output = run(resume if isinstance(resume, Command) else None, config)
        messages = output["messages"]
        yield output
    config = {"configurable": {"thread_id": thread_id}, "metadata": metadata}
    for turn in range(human_turns(messages), len(scenario.turns)):
        if "__interrupt__" in output:
            break
        announce(scenario.turns[turn].user)
        output = run(scenario.inputs(turn), config)
        yield output


TOOLS, START, TURNS = "gecko_tools", "gecko_start", "gecko_turns"
"""Keys of a checkpoint's metadata with digests of the scenario."""


def identify(scenario: Scenario, saved: StateSnapshot, thread_id: str, *, resume: bool) -> dict[str, str]:
    """Return the digests to save with each checkpoint of the run.

    Turns that have not started, recorded replies and limits may change; so may the start state of a scenario that
    `continues`.

    Raises:
        ScenarioError: The run cannot start or resume.
    """
    items = ([turn.user, [dict(item) for item in turn.checklist]] for turn in scenario.turns)
    turns = [digest(each)[:16] for each in items]
    now = {TOOLS: _digest_tools(scenario.tools), START: digest(scenario.state), TURNS: " ".join(turns)}
    if saved.created_at is None:
        if resume:
            raise ScenarioError(f"no thread {thread_id!r} to resume")
        return now
    if not resume:
        hint = "resume it with --resume (resume=True), or choose another thread with --thread NAME"
        raise ScenarioError(f"the thread {thread_id!r} already contains a run: {hint}")
    before: Mapping[str, Any] = saved.metadata or {}
    begun = max(human_turns(saved.values.get("messages", [])), 1)
    pairs = enumerate(zip_longest(str(before.get(TURNS, "")).split()[:begun], turns[:begun]), 1)
    differences = ["the tools"] if before.get(TOOLS) != now[TOOLS] else []
    differences += ["the start state"] if not scenario.continues and before.get(START) != now[START] else []
    differences += [f"turn {number}" for number, (old, new) in pairs if old != new]
    if differences:
        raise ScenarioError(
            f"{scenario.where}: the saved run was made from different sources: {', '.join(differences)}. "
            "Resume the run with the same files and options, or start another thread"
        )
    return {**now, START: before.get(START, now[START])}


def _digest_tools(tools: Toolkit) -> str:
    """Return a digest of the tools as models and rungs see them, independent of their order."""
    fields = {
        tool.name: digest(
            [
                [tool.description, tool.parameters, tool.result, tool.effect],
                [tool.contract.data, tool.contract.lets] if tool.contract else None,
                [[example.args, example.result] for example in tool.examples],
            ]
        )
        for tool in tools
    }
    schema = [] if tools.state_schema is None else [tools.state_schema]
    return digest([fields, [invariant.data for invariant in tools.invariants], *schema])


def unanswered(output: Mapping[str, Any], roles: Collection[Role] = ROLES) -> str:
    """Return why a model of one of these roles did not reply if the turn failed for that reason, else an empty text."""
    rehearsal = output.get("rehearsal")
    if not rehearsal or rehearsal["verdict"]["status"] != "failed" or not rehearsal["attempts"]:
        return ""
    last = rehearsal["attempts"][-1]
    stop = last.get("stop", {})
    found = notes_of(last["verdict"], "unanswered")
    reason, role = tell(found[0]) if found else "", "judge" if rehearsal["checklist"] else "checklist"
    if stop.get("code") == "planner_failed":
        reason, role = stop["message"], "planner"
    return str(reason) if role in roles else ""


def read_statuses(gecko: Gecko, thread_id: str) -> list[str]:
    """Return the verdicts of a thread's finished turns in order, without turns in which no model replied."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    begun = reversed(list(gecko.get_state_history(config, filter={"source": "input"})))
    now = gecko.get_state(config)
    finished = [entry.values for entry in begun] + ([] if now.tasks or unanswered(now.values) else [now.values])
    return [values["rehearsal"]["verdict"]["status"] for values in finished if values.get("rehearsal")]


def _run(
    gecko: Gecko, values: Any, config: RunnableConfig, *, on_event: OnEvent | None, durability: Durability | None
) -> dict[str, Any]:
    if on_event is None:
        return dict(gecko.invoke(values, config, durability=durability))
    reader = Reader(on_event)
    for part in gecko.stream(values, config, durability=durability, **stream_options(gecko)):
        reader.read(part)
    return reader.output
