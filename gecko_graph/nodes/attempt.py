"""attempt: one attempt from the identical state to the planner's final answer.

`attempt_node` is the outer graph's node: error boundary, limits, and a checkpoint namespace of its own. `begin` is the
inner graph's first node.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from ..channels import AttemptState, GeckoState
from ..context import GeckoContext, context_of
from ..errors import GeckoError
from ..events import event
from ..models.formatting import cut
from ..models.memory import recalled
from ..models.node import NodeScope
from ..models.usage import total
from ..simulation.ladder import RUNGS, Rungs, ladder_of
from ..state import VERSION, Stop, UnjudgedAttempt
from ..task_state.digest import clone, digest
from ..task_state.patch import make_patch
from ..turn import check_start, human_turns, task_of

LONGEST_REASON = 1_000

SPARE_CALLS = 5
"""Rounds of an attempt's graph beyond `max_steps`: for its first node, its last answer, a message cut short."""


def begin(state: AttemptState, scope: NodeScope, *, rungs: Rungs = RUNGS) -> dict[str, Any]:
    """Put the attempt's own copy of the task state in place; checks that it is the one that every attempt starts from.

    Raises:
        StateError: The state is not the one that the digest names: it was edited, or something changed it in place.
        GeckoError: The context's ladder names an unknown rung.
    """
    ladder_of(scope.context, rungs)
    found = digest(state["before"])
    check_start(found, state["start_digest"])
    lesson = state.get("lesson")
    scope.emit(
        event("gecko.attempt", attempt=state["number"], digest=found, feedback=lesson["feedback"] if lesson else "")
    )
    return {"task_state": [{"op": "add", "path": "", "value": state["before"]}]}


def attempt_node(graph: CompiledStateGraph[Any, Any, Any, Any], default: GeckoContext) -> Runnable[Any, Any]:
    """The node that runs one attempt as a graph of its own, sync and async.

    A wrapper, not the graph itself as a node: that would share every key of the same name and apply its reducers twice.
    """
    cycle = longest_cycle(graph)

    def run(state: GeckoState, config: RunnableConfig) -> dict[str, Any]:
        given, inner = frame(state, config, default, cycle=cycle)
        boundary = Boundary(given)
        with boundary:
            for values in graph.stream(given, inner, stream_mode="values"):
                boundary.seen = values
        return result(given, boundary.attempt(), boundary.seen)

    async def arun(state: GeckoState, config: RunnableConfig) -> dict[str, Any]:
        given, inner = frame(state, config, default, cycle=cycle)
        boundary = Boundary(given)
        with boundary:
            async for values in graph.astream(given, inner, stream_mode="values"):
                boundary.seen = values
        return result(given, boundary.attempt(), boundary.seen)

    return _AttemptNode(run, afunc=arun, name="attempt")


class _AttemptNode(RunnableLambda[Any, Any]):
    """LangGraph finds the graph in a RunnableLambda's function, and has opened a run for the node: no second one."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        run: Any = self.func
        return run(input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        run: Any = self.afunc
        return await run(input, config)


class Boundary:
    """What was seen of an attempt, and the error that it broke with: a bad attempt is data, not a crash.

    A user's mistake and LangGraph's own control flow go through.
    """

    def __init__(self, given: AttemptState) -> None:
        self.given = given
        self.seen: Any = given
        self.error: Exception | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, GeckoError | GraphBubbleUp):
            return False
        self.error = error
        return True

    def attempt(self) -> UnjudgedAttempt:
        """The attempt's record, with the steps that it made, whether it ended or broke."""
        return record(self.seen) if self.error is None else broken(self.given, self.seen, self.error)


def longest_cycle(graph: CompiledStateGraph[Any, Any, Any, Any]) -> int:
    """How many nodes the longest way round in a graph has: what one tool call costs at most, in supersteps."""
    after: dict[str, set[str]] = {}
    for edge in graph.get_graph().edges:
        after.setdefault(edge.source, set()).add(edge.target)

    def longest(way: tuple[str, ...]) -> int:
        """The longest way on from here that comes back to where it began."""
        ends = [len(way)] if way[0] in after.get(way[-1], ()) else [0]
        return max(ends + [longest((*way, each)) for each in after.get(way[-1], ()) if each not in way])

    return max((longest((node,)) for node in after), default=0)


def frame(
    state: GeckoState, config: RunnableConfig, default: GeckoContext, *, cycle: int
) -> tuple[AttemptState, RunnableConfig]:
    """The attempt's input and config, with two things that a subgraph would take from its caller.

    The recursion limit, from the supersteps that a call costs at most; and the run's name, which tells attempts apart
    in a trace. Under the name of its node LangGraph would send all that the planner saw, simulated results included, to
    whoever streams `messages` without subgraphs.
    """
    context = context_of(get_runtime().context, default)
    number = state.get("number") or len(state.get("attempts") or []) + 1
    own: RunnableConfig = {
        "recursion_limit": cycle * (context.max_steps + SPARE_CALLS),
        "run_name": f"attempt {number}",
    }
    return attempt_input(state, number, context), {**config, **own}


def result(given: AttemptState, attempt: UnjudgedAttempt, seen: AttemptState) -> dict[str, Any]:
    """What the outer graph keeps of an attempt, ended or broken: the record, what it supposed and what it has cost."""
    return {
        "unjudged": [attempt],
        "facts": seen.get("facts", {}),
        "semantic": seen.get("semantic", [])[len(given["semantic"]) :],
        "ledger": {"turn": given["ledger_turn"], "usage": attempt["usage"], "asked": seen.get("asked", {})},
    }


def attempt_input(state: GeckoState, number: int, context: GeckoContext) -> AttemptState:
    """What one attempt is given: its own copy of the task state, and everything of the turn that it may know."""
    ledger, messages = state["ledger"], state["messages"]
    spent = total(ledger["usage"])
    deadline = None if context.time_budget_s is None else ledger["started_at"] + context.time_budget_s
    before = clone(state.get("task_state") or {})
    return {
        "number": number,
        "turn": human_turns(messages) - 1,
        "task": cut(task_of(messages), budget=context.view_chars),
        "start_digest": state["start_digest"],
        "before": before,
        "conversation": recalled(messages),
        "lesson": state["lesson"],
        "spent_tokens": spent["input_tokens"] + spent["output_tokens"],
        "width": state["width"],
        "deadline": deadline,
        "facts": state.get("facts") or {},
        "semantic": state.get("semantic") or [],
        "asked": ledger["asked"],
        "ledger_turn": ledger["turn"],
    }


def record(state: AttemptState) -> UnjudgedAttempt:
    """The finished attempt as it is kept."""
    return {
        "v": VERSION,
        "number": state["number"],
        "start_digest": state["start_digest"],
        "end_digest": digest(state["task_state"]),
        "steps": state.get("steps", []),
        "answer": state.get("answer", ""),
        "change": make_patch(state["before"], state["task_state"]),
        "usage": state.get("usage", {}),
        "stop_reason": state.get("stop_reason", ""),
        "stop": state.get("stop") or stopped(state),
    }


def stopped(state: AttemptState) -> Stop:
    """Why an attempt ended whose planner has stopped under an older version, which kept the message alone."""
    return {"code": "answered" if state.get("answer") else "planner_failed", "message": state.get("stop_reason", "")}


def broken(given: AttemptState, seen: AttemptState, error: Exception) -> UnjudgedAttempt:
    """The record of an attempt that broke, with the steps it made: a bad attempt is data, not a crash."""
    reason = cut(f"the attempt broke: {type(error).__name__}: {error}", budget=LONGEST_REASON)
    return {
        "v": VERSION,
        "number": given["number"],
        "start_digest": given["start_digest"],
        "end_digest": given["start_digest"],
        "steps": seen.get("steps", []),
        "answer": seen.get("answer", ""),
        "change": [],
        "usage": seen.get("usage", {}),
        "stop_reason": reason,
        "stop": {"code": "broken", "message": reason},
    }
