"""Whether a call may be made: its arguments by rule, its precondition in a task state. No model, no simulation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NotRequired, TypeAlias, TypeGuard

from typing_extensions import TypedDict

from ..errors import StateError
from ..schemas.complaints import about, find_complaints, malformed, unknown_tool
from ..state import Call, Complaint, Json, JsonObject, Violation
from ..values.digest import check_json, clone
from ..values.places import clock, excerpt
from .spec import ToolSpec

Calls: TypeAlias = Sequence[JsonObject]
Unclear: TypeAlias = Literal["pass", "refuse"]

LONGEST_ID = 100
LONGEST_NAME = 200


class Rejection(TypedDict):
    """Why a call must not be made: `complaints` about its form, or the tool's own `error` in this state."""

    complaints: NotRequired[list[Complaint]]
    error: NotRequired[Json]
    violations: NotRequired[list[Violation]]
    """All preconditions that are broken; the first one's error is `error`."""


def check_by_rule(call: Call, tool: ToolSpec | None) -> list[Complaint]:
    """Return what is wrong with a call by rule; nothing is where its arguments fit the tool's schema."""
    if tool is None:
        return [unknown_tool(call)]
    return [malformed(call)] if "malformed" in call else find_complaints(tool, call["args"])


def check_call(
    call: Call, state: JsonObject, tool: ToolSpec | None, *, unclear: Unclear, calls: Calls, untrusted: Sequence[str]
) -> Rejection | None:
    """Return why a call must not be made; see `Toolkit.check`."""
    if complaints := check_by_rule(call, tool):
        return {"complaints": complaints}
    if tool is None or tool.contract is None:
        return None
    run = tool.contract.open(
        args=call["args"],
        parameters=tool.parameters,
        state=state,
        call=call,
        now=clock(state),
        seed=0,
        calls=calls,
    ).trust(lambda: untrusted)
    if refusal := run.refusal():
        return {"error": refusal.error, "violations": [*refusal.violations]}
    doubts = [] if tool.is_learned else [*run.unclear, *(() if tool.reads else run.skipped)]
    if doubts and unclear == "refuse":
        return {"error": f"it cannot be checked: {'; '.join(doubts[:3])}"}
    return None


def read_call(given: object, *, taken: Collection[str], number: int) -> tuple[Call, Complaint | None]:
    """Return a call, which may be anything, as a step keeps it, and what is wrong with its form.

    One without an id, or with one that is taken, is given one by its number.
    """
    fields = given if isinstance(given, dict) else {}
    name, identifier = fields.get("name"), fields.get("id")
    while f"call_{number}" in taken:
        number += 1
    call: Call = {"id": f"call_{number}", "name": "", "args": {}}
    if _is_text(name):
        call["name"] = name[:LONGEST_NAME]
    if free := _is_text(identifier) and 0 < len(identifier) <= LONGEST_ID and identifier not in taken:
        call["id"] = identifier
    args = fields.get("args", {})
    if fault := find_fault(args, what="args"):
        call["malformed"] = fault
    elif isinstance(args, dict):
        call["args"] = clone(args)
    else:
        call["malformed"] = args if isinstance(args, str) else excerpt(args)
    if not isinstance(given, dict) or not _is_text(name):
        return call, about(
            call, expected='a call as {"name", "args"}', got=find_fault(given, what="the value") or excerpt(given)
        )
    if identifier is not None and not free:
        expected = f"an id of 1 to {LONGEST_ID} characters that no call before has had, or none"
        return call, about(call, expected=expected, got=_describe(identifier))
    return call, None


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and find_fault(value) is None


def find_fault(value: object, *, what: str = "it") -> str | None:
    """Return why no checkpoint can store a value: numbers and texts that JSON does not have, too many levels."""
    try:
        check_json(value, what=what)
    except StateError as error:
        return str(error)
    return None


def _describe(value: object) -> str:
    return find_fault(value, what="the value") or excerpt(value)
