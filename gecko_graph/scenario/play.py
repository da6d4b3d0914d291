"""Running a scenario: its turns in order on one thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Checkpointer, Command, Durability

from ..errors import ScenarioError
from ..events import Reader, stream_options
from ..graph import Gecko, Model
from ..state import ROLES, Role
from ..world.turn import human_turns, task_of
from .case import Scenario
from .identity import START, check_same, describe_identity

OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
OnTurn: TypeAlias = Callable[[str], None]


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    model: Model | None = None,
    models: Mapping[Role, Model] | None = None,
    base_url: str | None = None,
    checkpointer: Checkpointer = None,
    thread_id: str | None = None,
    on_event: OnEvent | None = None,
) -> list[dict[str, Any]]:
    """Run all turns of a scenario on one thread.

    Args:
        scenario: The case, or its file.
        model: Replaces every recorded reply.
        models: Replace single roles' recorded replies.
        base_url: Address of an OpenAI-compatible server, for models given as text.
        checkpointer: Keeps the snapshots; in memory if left out.
        thread_id: The thread's name, else the scenario's.
        on_event: Called with each event (`events.py`) as it happens.

    Returns:
        The graph's output of each turn, `{"messages", "rehearsal", "task_state"}`.

    Raises:
        ScenarioError: The file cannot be read, the thread already holds a run, or there is no planner.
        ModelError: A model cannot be built.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario)
    saver = checkpointer or InMemorySaver()
    gecko = scenario.gecko(model=model, models=models, base_url=base_url, checkpointer=saver)
    return list(play(scenario, gecko, thread_id=thread_id or scenario.name, on_event=on_event))


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

    With `resume` a thread goes on that was interrupted, or whose turns are not all done; a last turn that no model
    answered is repeated from its beginning. Where an agent asks, the turns end; a `Command` as `resume` answers.
    `on_turn` is called with the user's message when a turn begins or is resumed. With the durability `sync` nothing is
    lost when the process dies.

    Raises:
        ScenarioError: The thread to resume does not exist, or was made from another scenario; or it exists and
            `resume` is False.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    snapshot = gecko.get_state(config)
    known = snapshot.created_at is not None
    if resume and not known:
        raise ScenarioError(f"no thread {thread_id!r} to resume")
    if known and not resume:
        hint = "go on with it by --resume (resume=True), or choose another one: --thread NAME"
        raise ScenarioError(f"the thread {thread_id!r} already holds a run: {hint}")
    if resume:
        check_same(scenario, snapshot)
    kept = {key: value for key, value in (snapshot.metadata or {}).items() if key == START}
    config["metadata"] = metadata = {**describe_identity(scenario), **kept}
    announce = on_turn or (lambda task: None)
    messages, output = snapshot.values.get("messages", []), dict[str, Any]()
    answer = resume if isinstance(resume, Command) else None
    if resume and snapshot.tasks:
        announce(task_of(messages) if messages else scenario.turns[0].user)
        output = _run(gecko, answer, config, on_event=on_event, durability=durability)
        messages = output["messages"]
        yield output
    elif resume and unanswered(snapshot.values):
        announce(task_of(messages))
        history = gecko.get_state_history(config)
        start = next(entry for entry in history if (entry.metadata or {}).get("source") == "input")
        output = _run(gecko, None, {**start.config, "metadata": metadata}, on_event=on_event, durability=durability)
        yield output
    for turn in range(human_turns(messages), len(scenario.turns)):
        if "__interrupt__" in output:
            break
        announce(scenario.turns[turn].user)
        output = _run(gecko, scenario.inputs(turn), config, on_event=on_event, durability=durability)
        yield output


def unanswered(output: Mapping[str, Any], roles: Collection[Role] = ROLES) -> str:
    """Return which of the roles' models did not answer and why, where a turn failed for that; else nothing."""
    rehearsal = output.get("rehearsal")
    if not rehearsal or rehearsal["verdict"]["status"] != "failed" or not rehearsal["attempts"]:
        return ""
    last = rehearsal["attempts"][-1]
    stop = last.get("stop", {})
    reason, role = last["verdict"].get("unanswered", ""), "judge" if rehearsal["checklist"] else "checklist"
    if stop.get("code") == "planner_failed":
        reason, role = stop["message"], "planner"
    return str(reason) if role in roles else ""


def read_verdicts(gecko: Gecko, thread_id: str) -> list[str]:
    """Return the verdicts of a thread's finished turns in order; one that no model answered has none."""
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
