"""How costs grow with the work: tool calls in one attempt, kilobytes of task state, tasks at once.

Processor time is measured, so that other work on the machine does not count; the planner's model says what is recorded
and does not read its prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import create_gecko
from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.state import JsonObject

from . import case
from .costs import checkpointed, computed, peak_bytes, timed

STEPS = (10, 30, 100, 300, 1000)
SIZES_KB = (1, 10, 100, 1000)
AT_ONCE = (1, 4, 16, 64, 256)


def by_steps(steps: int) -> JsonObject:
    """One attempt of so many tool calls on 1 kB of state.

    Returns:
        Processor seconds of the attempt, of the bare calls of the model alone (LangChain reads the whole conversation
        at each), peak memory and bytes checkpointed.
    """
    create = long_attempt(steps)
    gecko, given = create(), case.inputs(case.start_state(1, whole=True), checks=True)
    repeats = 5 if steps <= 100 else 3
    return {
        "seconds": least(lambda: gecko.invoke(given), repeats),
        "model_seconds": least(bare_calls(steps), repeats),
        "memory": peak_bytes(lambda: gecko.invoke(given)),
        **checkpointed(lambda saver: kept(create, saver), given),
    }


def least(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the cheapest of some runs: other work on the machine slows a processor down, never up."""
    return min(computed(work) for _ in range(repeats))


def long_attempt(steps: int) -> partial[Gecko]:
    """Creates the graph that makes so many tool calls in one attempt."""
    context = GeckoContext.model_validate({"max_steps": steps + 1, "max_retries": 0})
    toolkit = case.files_toolkit(contracts=True)
    return partial(create_gecko, toolkit, model=case.long_model(steps), context=context)


def bare_calls(steps: int) -> Callable[[], None]:
    """Asks the planner's model as often, with a conversation that grows as the attempt's does; no graph."""
    bound = case.long_model(steps).bind_tools(case.files_toolkit(contracts=True).as_openai())

    def ask() -> None:
        seen: list[BaseMessage] = [HumanMessage(case.TASK)]
        for number in range(steps):
            where = {"gecko_role": "planner", "gecko_turn": 0, "gecko_attempt": 1, "gecko_question": number}
            bound.invoke(seen, {"metadata": where})
            made = tool_call(name="touch", args={"file_name": f"file_{number}.txt"}, id=f"call_{number}")
            seen += [AIMessage("", tool_calls=[made]), ToolMessage("{}", tool_call_id=f"call_{number}")]

    return ask


def by_state(kilobytes: int) -> JsonObject:
    """The case on so many kilobytes of state: processor seconds, peak memory, bytes checkpointed, prompt tokens."""
    given = case.inputs(case.start_state(kilobytes, whole=True), checks=True)
    model = case.recorded()
    create = partial(create_gecko, case.files_toolkit(contracts=True), model=model)
    gecko = create()
    gecko.invoke(given)
    runs = [gecko.invoke(given)]
    usage = runs[0]["rehearsal"]["usage"]
    return {
        "seconds": least(lambda: gecko.invoke(given), 3),
        "memory": peak_bytes(lambda: gecko.invoke(given)),
        "tokens": sum(each["input_tokens"] for each in usage.values()),
        **checkpointed(lambda saver: kept(create, saver), given),
    }


def kept(create: partial[Gecko], saver: SqliteSaver) -> Gecko:
    """The graph with a saver."""
    return create(checkpointer=saver)


def by_tasks(tasks: int) -> JsonObject:
    """So many tasks at once in one event loop with a model that answers at once: tasks a second, memory."""
    gecko = case.by_contract(case.recorded())
    given = case.inputs(case.start_state(10, whole=True), checks=True)
    case.at_once(gecko, given, tasks=1)
    run = partial(case.at_once, gecko, given, tasks=tasks)
    repeats = max(1, 16 // tasks)
    spent: list[float] = []
    wall = timed(lambda: spent.extend(computed(run) for _ in range(repeats)))
    return {"seconds": sum(spent) / repeats, "a_second": tasks * repeats / wall, "memory": peak_bytes(run)}
