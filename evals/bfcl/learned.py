"""What learned contracts predict for real calls: refused, warned, lawful or unknown; result and state if known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.errors import EvaluationFailed
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import json_equal
from gecko_graph.values.patch import apply_patch

from .drawn import placeholders
from .fidelity import Recorded

WARNED = "perhaps refused"
OUTSIDE = "outside"
"""A call that breaks its tool's document, which refuses it independently of learned contracts."""


def foreseen(toolkit: Toolkit, one: Recorded) -> JsonObject:
    """Return a contract's prediction for a call in its own state, compared with the real outcome.

    Returns:
        `outcome` (refused, lawful, warned, unknown or outside), `fails`; and, if predicted, whether `result` and
        `state` are right.
    """
    about: JsonObject = {"class": one.kind, "tool": one.name, "fails": one.fails, "outcome": "unknown"}
    tool = toolkit.get(one.name)
    if tool is None or find_complaints(tool, one.args):
        return {**about, "outcome": OUTSIDE}
    if tool.contract is None:
        return about
    before = one.before.get(one.kind, {})
    call: Any = {"id": "call_1", "name": one.name, "args": one.args}
    run = tool.contract.open(args=one.args, parameters=tool.parameters, state=before, call=call, now=None, seed=0)
    refusal = run.refusal()
    if refusal is not None:
        return {**about, "outcome": "refused", "by": refusal.violations[0]["clause"], "text": refusal.error}
    if run.unknown is not None:
        return {**about, "outcome": "warned" if run.unknown.startswith(WARNED) else "unknown", "why": run.unknown}
    if run.unclear:
        return {**about, "why": run.unclear[0]}
    about["outcome"] = "lawful"
    try:
        answer = run.answer()
    except EvaluationFailed as failure:
        return {**about, "why": str(failure)}
    if answer is None or one.fails:
        return {**about, **({"result": False, "state": False} if answer is not None else {})}
    after: JsonObject = {**one.before, one.kind: apply_patch(before, answer.patch)}
    real = placeholders(one.name, one.result, one.after, one.before)
    ours = placeholders(one.name, answer.result, after, one.before)
    return {**about, **{key: json_equal(real[key], ours[key]) for key in ("result", "state")}}


def tally(found: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Return counts over predictions: all, answered, right, lawful calls refused, refusals allowed and so on."""
    inside = [one for one in found if one["outcome"] != OUTSIDE]
    answered = [one for one in inside if one["outcome"] in ("refused", "lawful")]
    right = [one for one in answered if (one["outcome"] == "refused") == one["fails"]]
    whole = [one for one in inside if "result" in one or one["outcome"] == "refused"]
    return {
        "calls": len(inside),
        "refusals": sum(one["fails"] for one in inside),
        "answered": len(answered),
        "right": len(right),
        "warned": sum(one["outcome"] == "warned" for one in inside),
        "warned_lawful": sum(one["outcome"] == "warned" and not one["fails"] for one in inside),
        "lawful_refused": sum(one["outcome"] == "refused" and not one["fails"] for one in inside),
        "refusals_allowed": sum(one["outcome"] == "lawful" and one["fails"] for one in inside),
        "refusals_refused": sum(one["outcome"] == "refused" and one["fails"] for one in inside),
        "whole": len(whole),
        "whole_right": sum(is_whole_right(one) for one in whole),
    }


def is_whole_right(one: Mapping[str, Any]) -> bool:
    """Return whether outcome, result and state are right."""
    if one["outcome"] == "refused":
        return bool(one["fails"])
    return not one["fails"] and bool(one.get("result")) and bool(one.get("state"))


def add_tallies(tallies: Sequence[JsonObject]) -> JsonObject:
    """Return the sum of several tallies."""
    return {key: sum(one[key] for one in tallies) for key in tallies[0]} if tallies else {}
