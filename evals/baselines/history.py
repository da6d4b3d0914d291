"""What a baseline remembers of its own turns: all of its chosen trial, which nobody has judged."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import tool_call

from gecko_graph.models.ask import FunctionCall, Reply
from gecko_graph.models.conversation import build_step_message
from gecko_graph.models.node import NodeScope
from gecko_graph.nodes.rounds import finish
from gecko_graph.state import Step, Verdict
from gecko_graph.tools import Toolkit
from gecko_graph.tools.spec import valid_name
from gecko_graph.world.as_tools import WHOLE
from gecko_graph.world.channels import AttemptState, GeckoState
from gecko_graph.world.check import validator

UNJUDGED: Verdict = {"status": "accepted", "score": 0.0, "items": [], "feedback": ""}
"""No baseline has a judge of the task state, so none of its trials is refused."""
MESSAGE = "message"
"""The key of a call that says which of the planner's messages it is from."""


def unjudged(state: GeckoState, scope: NodeScope) -> dict[str, Any]:
    """Return the trials as done."""
    return {"attempts": [{**each, "verdict": UNJUDGED} for each in state["bookkeeping"]["attempts_to_judge"]]}


def keep_history(state: GeckoState, scope: NodeScope) -> Generator[list[FunctionCall], list[Reply], dict[str, Any]]:
    """Finish the turn; the conversation keeps the chosen trial's calls and results whole, then its answer."""
    update = yield from finish(state, scope)
    rehearsal = update["rehearsal"]
    chosen = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    by_message = groupby(chosen["steps"], key=lambda step: step["call"].get(MESSAGE))
    told = [each for _, steps in by_message for each in tell_steps([*steps])]
    return {**update, "messages": [*told, AIMessage(chosen["answer"])] if chosen["answer"] else told}


def tell_steps(steps: Sequence[Step]) -> list[AnyMessage]:
    """Return the calls of one message and their results as an agent's history has them."""
    calls = (step["call"] for step in steps)
    made = [tool_call(name=valid_name(each["name"]), args=each["args"], id=each["id"]) for each in calls]
    return [AIMessage("", tool_calls=made), *(build_step_message(each, task="", budget=WHOLE) for each in steps)]


def numbered(state: AttemptState, scope: NodeScope, *, toolkit: Toolkit) -> Any:
    """Validate the calls; each keeps the number of the planner's message that it is from."""
    number = sum(isinstance(each, AIMessage) for each in state.get("trace", []))
    pending: Any = [{MESSAGE: number, **call} for call in state["pending"]]
    return validator({**state, "pending": pending}, scope, toolkit=toolkit)
