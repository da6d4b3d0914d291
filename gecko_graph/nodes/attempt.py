"""attempt: one attempt, from the turn's start state to the planner's final answer.

`attempt_node` is the outer graph's node, with the error boundary, the limits and its own checkpoint namespace. `begin`
is the inner graph's first node.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from ..context import GeckoContext, context_of
from ..errors import GeckoError
from ..events import event
from ..models.conversation import build_call_messages
from ..models.formatting import cut
from ..models.memory import recall_calls
from ..models.node import NodeScope, close_record, open_record, require_whole
from ..models.usage import total
from ..retrieval.search import MOST_SEARCHES
from ..state import VERSION, Stop, UnjudgedAttempt
from ..values.difference import make_patch
from ..values.digest import clone, digest
from ..values.patch import booked_patch
from ..world.channels import AttemptRecord, AttemptState, GeckoState
from ..world.ladder import RUNGS, Rungs, ladder_of
from ..world.turn import check_start, human_turns, observed_state, task_of

LONGEST_REASON = 1_000

LONGEST_CYCLE = 8
"""Most supersteps that a call costs: those of forward execution (`toolgate`)."""
SPARE_CALLS = 5
"""Rounds of an attempt's graph beyond `max_steps`: for its first node, its final answer, and a shortened message."""


def begin(state: AttemptState, scope: NodeScope, *, rungs: Rungs = RUNGS) -> dict[str, Any]:
    """Set the attempt's own copy of the task state after a check that it is the turn's start state.

    Raises:
        StateError: The digest of the state differs: it was edited, or changed in place.
        GeckoError: The context's ladder names an unknown rung.
    """
    ladder_of(scope.context, rungs)
    found = digest(state["before"])
    check_start(found, state["start_digest"])
    lesson = state.get("lesson")
    scope.emit(
        event("gecko.attempt", attempt=state["number"], digest=found, feedback=lesson["feedback"] if lesson else "")
    )
    steps = state.get("replayed") or []
    patches = [operation for step in steps for operation in booked_patch(step["outcome"])]
    start = {"task_state": [{"op": "add", "path": "", "value": state["before"]}, *patches]}
    trace = build_call_messages(steps, task=state["task"], budget=scope.context.view_chars)
    return {**start, "steps": steps, "trace": trace} if steps else start


def attempt_node(
    graph: CompiledStateGraph[Any, Any, Any, Any], default: GeckoContext, *, keep: Sequence[str] = ()
) -> Runnable[Any, Any]:
    """Return the node that runs an attempt as its own graph, sync and async; it also returns its keys `keep`.

    The graph itself cannot be the node: it would share every key of the same name, and reducers would run twice.
    """
    kept = AttemptRecord.__annotations__

    def run(state: GeckoState, config: RunnableConfig) -> dict[str, Any]:
        given, inner = prepare_run(state, config, default)
        with Boundary(given) as boundary:
            for values in graph.stream(close_record(given, kept), inner, stream_mode="values"):
                boundary.seen = values
        return boundary.update(keep)

    async def arun(state: GeckoState, config: RunnableConfig) -> dict[str, Any]:
        given, inner = prepare_run(state, config, default)
        with Boundary(given) as boundary:
            async for values in graph.astream(close_record(given, kept), inner, stream_mode="values"):
                boundary.seen = values
        return boundary.update(keep)

    return _AttemptNode(run, afunc=arun, name="attempt")


class _AttemptNode(RunnableLambda[Any, Any]):
    """A RunnableLambda whose graph LangGraph can find, but which does not add a tracer run of its own."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        run: Any = self.func
        return run(input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        run: Any = self.afunc
        return await run(input, config)


class Boundary(AbstractContextManager["Boundary"]):
    """The error boundary of an attempt: its latest values and its error. A failed attempt is data, not a crash.

    GeckoError (a mistake of the user) and LangGraph's control flow pass through.
    """

    def __init__(self, given: AttemptState) -> None:
        self.given = given
        self.seen: Any = given
        self.error: Exception | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, GeckoError | GraphBubbleUp):
            return False
        self.error = error
        return True

    def update(self, keep: Sequence[str]) -> dict[str, Any]:
        """Return the outer graph's update for the attempt, ended or broken: its record, facts and cost."""
        given: Any = self.given
        seen: Any = open_record(self.seen)
        attempt = build_broken_record(given, seen, self.error) if self.error else build_record(seen)
        return {
            **{key: seen.get(key, []) for key in keep},
            "bookkeeping": {
                "attempts_to_judge": [attempt],
                "facts": seen.get("facts", {}),
                "argument_verdicts": seen.get("argument_verdicts", [])[len(given["argument_verdicts"]) :],
                "ledger": {"turn": given["ledger_turn"], "usage": attempt["usage"], "asked": seen.get("asked", {})},
            },
        }


def prepare_run(
    state: GeckoState, config: RunnableConfig, default: GeckoContext
) -> tuple[AttemptState, RunnableConfig]:
    """Return the attempt's input and its config, without the settings that a subgraph would inherit.

    Three things differ: the recursion limit; LangGraph's metadata of the
    calling node, which every inner node would copy and replace; and the run's name, which distinguishes attempts in a
    trace. If the run had the name of its node, LangGraph would send the planner's messages, with simulated results, to
    callers that stream `messages` without subgraphs.
    """
    require_whole(state)
    context = context_of(get_runtime().context, default)
    number = state.get("number") or next_attempt(state)
    own: RunnableConfig = {
        "recursion_limit": LONGEST_CYCLE * (context.max_steps + SPARE_CALLS) + MOST_SEARCHES,
        "run_name": f"attempt {number}",
        "metadata": {key: one for key, one in config.get("metadata", {}).items() if not key.startswith("langgraph_")},
    }
    return build_input(state, number, context), {**config, **own}


def next_attempt(state: GeckoState) -> int:
    return state["bookkeeping"]["numbered_from"] + len(state.get("attempts") or []) + 1


def build_input(state: GeckoState, number: int, context: GeckoContext) -> AttemptState:
    """Return an attempt's input: its own copy of the task state, and what it may know of the turn."""
    kept, messages = state["bookkeeping"], state["messages"]
    ledger = kept["ledger"]
    spent = total(ledger["usage"])
    deadline = None if context.time_budget_s is None else ledger["started_at"] + context.time_budget_s
    before = clone(state.get("task_state") or {})
    return {
        "number": number,
        "turn": human_turns(messages) - 1,
        "task": cut(task_of(messages), budget=context.view_chars),
        "start_digest": kept["start_digest"],
        "before": before,
        "conversation": recall_calls(messages),
        "lesson": kept["lesson"],
        "supposed": state.get("supposed") or [],
        "replayed": kept["replayed"],
        "offered_tools": carry_shown(state),
        "taught": kept.get("taught", []),
        "spent_tokens": spent["input_tokens"] + spent["output_tokens"],
        "attempts_at_once": kept["attempts_at_once"],
        "deadline": deadline,
        "facts": kept["facts"],
        "argument_verdicts": kept["argument_verdicts"],
        "asked": ledger["asked"],
        "ledger_turn": ledger["turn"],
    }


def carry_shown(state: GeckoState) -> list[str] | None:
    """Return the tools chosen for the turn, and those called so far; None if all tools are shown."""
    kept = state["bookkeeping"]
    shown = kept["offered_tools"]
    made = [*kept["replayed"], *(step for each in state.get("attempts") or [] for step in each["steps"])]
    return None if shown is None else list(dict.fromkeys([*shown, *(step["call"]["name"] for step in made)]))


def build_record(state: AttemptState) -> UnjudgedAttempt:
    """Return the record of a finished attempt; differences that real reads have shown are not among its changes."""
    seen = observed_state(state["before"], state.get("steps", []))
    record: UnjudgedAttempt = {
        "v": VERSION,
        "number": state["number"],
        "start_digest": state["start_digest"],
        "end_digest": digest(state["task_state"]),
        "steps": state.get("steps", []),
        "answer": state.get("answer", ""),
        "change": make_patch(seen, state["task_state"]),
        "usage": state.get("usage", {}),
        "stop_reason": state.get("stop_reason", ""),
        "stop": state["stop"],
    }
    return record if seen is state["before"] else {**record, "observed": make_patch(state["before"], seen)}


def build_broken_record(given: AttemptState, seen: AttemptState, error: Exception) -> UnjudgedAttempt:
    """Return the record of an attempt that ended with an error, with the steps made so far."""
    reason = cut(f"the attempt broke: {type(error).__name__}: {error}", budget=LONGEST_REASON)
    stop: Stop = {"code": "broken", "message": reason}
    ended = build_record({**given, **seen, "task_state": given["before"], "stop_reason": reason, "stop": stop})
    return {**ended, "end_digest": given["start_digest"], "change": [], "observed": []}
