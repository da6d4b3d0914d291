"""review: asks a person about the plan, in the shape of LangChain's HumanInTheLoopMiddleware."""

from __future__ import annotations

import time
from typing import Any

from langgraph.types import interrupt

from ..execution.channels import AgentState
from ..execution.policy import ReviewPolicy
from ..execution.records import PlannedCall
from ..models.node import NodeScope


def review(state: AgentState, scope: NodeScope, *, policy: ReviewPolicy) -> dict[str, Any]:
    """Approve the preview, by rule or by a person's decisions."""
    preview = state["preview"]
    assert preview is not None
    asked = [each for each in preview["calls"] if each["review"] == "ask"]
    if any(each["review"] == "refuse" for each in preview["calls"]):
        return {"approval": None}
    if asked:
        decisions = interrupt(review_request(asked))["decisions"]
        if any(decision["type"] != "approve" for decision in decisions):
            return {"approval": None}
    return {"approval": {"digest": preview["digest"], "at": time.time()}}


def review_request(asked: list[PlannedCall]) -> dict[str, Any]:
    """Return the HITLRequest: an action for each reviewed call, in plan order."""
    actions = [
        {"name": each["call"]["name"], "args": each["call"]["args"], "description": each["reason"]} for each in asked
    ]
    names = dict.fromkeys(each["call"]["name"] for each in asked)
    decisions = ["approve", "edit", "reject", "respond"]
    return {
        "action_requests": actions,
        "review_configs": [{"action_name": name, "allowed_decisions": decisions} for name in names],
    }
