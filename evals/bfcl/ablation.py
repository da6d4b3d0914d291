"""The rehearsal with one part removed (the paper, section 6.3 and figure 4).

- without validation: neither rules nor a model check arguments. Calls that cannot be made at all are still refused: of
unknown tools, or with arguments that are not a JSON object.
- without state: no change of the task state is kept or estimated, and the judge sees none; the start state remains.
- without feedback: making any call counts as success. There is no checklist and no judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gecko_graph.models.node import NodeFunction, NodeScope
from gecko_graph.nodes.judge import judge
from gecko_graph.state import ChecklistItem, JsonObject, UnjudgedAttempt, Verdict
from gecko_graph.tools import Toolkit
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.channels import AttemptState, GeckoState
from gecko_graph.world.check import validator
from gecko_graph.world.commit import state_updater

PARTS = ("validation", "state", "feedback")
CALLS_WERE_MADE: ChecklistItem = {"id": "calls", "description": "tool calls were made"}
ANYTHING: JsonObject = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Unruled:
    """The toolkit without its argument rules."""

    toolkit: Toolkit

    def get(self, name: str, /) -> ToolSpec | None:
        """Return the tool, with any arguments allowed."""
        tool = self.toolkit.get(name)
        return None if tool is None else replace(tool, parameters=ANYTHING)


def unvalidated(state: AttemptState, scope: NodeScope, *, toolkit: Toolkit) -> Any:
    """Let every call through that can be made at all, without asking a model."""
    silent = replace(scope, context=scope.context.model_copy(update={"semantic_validation": False}))
    return validator(state, silent, toolkit=Unruled(toolkit))


def forgetful(state: AttemptState, scope: NodeScope, *, toolkit: Toolkit) -> Any:
    """Answer the planner and drop the changes of the calls, without asking a model to estimate them."""
    mute = replace(scope, has_model=lambda role: False)
    update = yield from state_updater(state, mute, toolkit=toolkit)
    steps = [{**step, "outcome": {**step["outcome"], "patch": []}} for step in update["steps"]]
    return {**update, "steps": steps, "task_state": []}


def stateless_judge(state: GeckoState, scope: NodeScope) -> Any:
    """Judge from the calls and their results, with an empty task state."""
    blind: Any = {**state, "task_state": {}}
    return judge(blind, scope)


def unasked(state: Any, scope: NodeScope) -> dict[str, Any]:
    """Return one item instead of a model's checklist, so that a failed attempt is followed by another."""
    return {"items": [CALLS_WERE_MADE], "bookkeeping": {"items_failure": ""}}


def naive_judge(state: GeckoState, scope: NodeScope) -> dict[str, Any]:
    """Accept an attempt if it has made any call; the feedback does not say what is missing."""
    unjudged = state["bookkeeping"]["attempts_to_judge"]
    return {"attempts": [{**each, "verdict": naive_verdict(each)} for each in unjudged]}


def naive_verdict(attempt: UnjudgedAttempt) -> Verdict:
    """Return `accepted` if the attempt has made any call."""
    made = bool(attempt["steps"])
    item: Any = {**CALLS_WERE_MADE, "status": "success" if made else "failed", "reason": "", "by": "rule"}
    feedback = "" if made else "no tool calls were made"
    return {"status": "accepted" if made else "failed", "score": float(made), "items": [item], "feedback": feedback}


def nodes_without(part: str, toolkit: Toolkit) -> Mapping[str, NodeFunction]:
    """Return replacements for the graph's nodes that remove one of `PARTS`."""
    if part == "validation":
        return {"validator": partial(unvalidated, toolkit=toolkit)}
    if part == "state":
        return {"state_updater": partial(forgetful, toolkit=toolkit), "judge": stateless_judge}
    return {"checklist": unasked, "judge": naive_judge} if part == "feedback" else {}
