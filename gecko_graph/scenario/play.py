"""Running a scenario: its turns, one after the other, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Checkpointer, Durability

from ..errors import ScenarioError
from ..events import Reader, stream_options
from ..graph import Gecko, Model
from ..state import Role
from ..turn import human_turns, task_of
from .case import Scenario

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
        model: Speaks in place of every recorded reply.
        models: Speak in place of single roles' recorded replies.
        base_url: Address of an OpenAI-compatible server, for models given as text.
        checkpointer: Keeps the snapshots; in memory if there is none.
        thread_id: The thread's name, else the scenario's.
        on_event: Called with each event (`events.py`) as it happens.

    Returns:
        What the graph gave back, `{"messages", "rehearsal", "task_state"}`, turn by turn.

    Raises:
        ScenarioError: The file cannot be read, the thread has been used before, or nobody speaks for the planner.
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
    resume: bool = False,
    durability: Durability | None = None,
) -> Iterator[dict[str, Any]]:
    """Run a scenario's turns one after the other, giving each turn's output when it is over.

    Args:
        scenario: The case.
        gecko: Its graph, with a checkpointer.
        thread_id: The thread's name.
        on_event: Called with each event as it happens.
        on_turn: Called with what the user says when a turn begins, or is resumed.
        resume: Go on with a thread that was interrupted, or whose turns are not all done. A last turn that no model
            answered is done again, from its beginning.
        durability: When checkpoints are written; `sync` loses nothing when the process dies.

    Raises:
        ScenarioError: There is nothing to resume, or there is but `resume` was not asked for.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    snapshot = gecko.get_state(config)
    known = snapshot.created_at is not None
    if resume and not known:
        raise ScenarioError(f"there is no thread {thread_id!r} to resume")
    if known and not resume:
        raise ScenarioError(f"the thread {thread_id!r} holds a run already: resume it, or take another thread")
    told = on_turn or _ignore
    messages = snapshot.values.get("messages", [])
    if resume and snapshot.tasks:
        told(task_of(messages) if messages else scenario.turns[0].user)
        output = _run(gecko, None, config, on_event=on_event, durability=durability)
        messages = output["messages"]
        yield output
    elif resume and unanswered(snapshot.values):
        told(task_of(messages))
        begun = next(each for each in gecko.get_state_history(config) if (each.metadata or {}).get("source") == "input")
        yield _run(gecko, None, begun.config, on_event=on_event, durability=durability)
    for turn in range(human_turns(messages), len(scenario.turns)):
        told(scenario.turns[turn].user)
        yield _run(gecko, scenario.inputs(turn), config, on_event=on_event, durability=durability)


def unanswered(output: Mapping[str, Any]) -> str:
    """Why a turn failed at a planner's model that did not answer; empty where it did not."""
    rehearsal = output.get("rehearsal")
    if not rehearsal or rehearsal["verdict"]["word"] != "failed" or not rehearsal["attempts"]:
        return ""
    stop = rehearsal["attempts"][-1].get("stop", {})
    return str(stop["message"]) if stop.get("code") == "planner_failed" else ""


def _ignore(text: str) -> None:
    del text


def _run(
    gecko: Gecko, given: Any, config: RunnableConfig, *, on_event: OnEvent | None, durability: Durability | None
) -> dict[str, Any]:
    if on_event is None:
        return dict(gecko.invoke(given, config, durability=durability))
    reader = Reader(on_event)
    for part in gecko.stream(given, config, durability=durability, **stream_options(gecko)):
        reader.read(part)
    return reader.output
