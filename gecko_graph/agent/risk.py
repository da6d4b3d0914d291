"""risk: has the plan's writes judged by their predicted effects, in a superstep before the one that asks a person."""

from __future__ import annotations

from typing import Any

from ..models.node import NodeScope
from ..real.policy import ReviewPolicy
from ..real.preview import finish_preview
from ..real.risk import judge_risks
from ..tools import Toolkit
from .channels import AgentState
from .review import Updates


def risk(state: AgentState, scope: NodeScope, *, policy: ReviewPolicy, toolkit: Toolkit) -> Updates:
    """Judge the calls that a person would be asked about; a verdict holds for the turn: no resume asks again."""
    preview, now, known = state["preview"], state["task_state"], state.get("risks") or {}
    assert preview is not None
    more: Any = {"origins": state["rehearsal"].get("origins", {}), "done": state["steps"], "known": known}
    found = yield from judge_risks(preview, now, state["messages"], scope.context, **more)
    for each in (calls := [each.copy() for each in preview["calls"]]):
        if each["call"]["id"] in found:
            each["risk"] = found[each["call"]["id"]]
    risks = {**known, **{each["key"]: each for each in found.values()}}
    return {"preview": finish_preview(calls, now, toolkit=toolkit, policy=policy), "risks": risks}
