"""Whether a call may be made: its arguments by rule, its precondition in a task state. No model, no simulation."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
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

KEYS = ("name", "args", "arguments", "id", "call_id", "type", "index", "status", "error", "extras", "malformed")
"""Of a call as LangChain and OpenAI write it, and as a step keeps it."""
_OURS = frozenset({"name", "args", "id", "type"})
FORMS = 'a call as {"name", "args", "id"}: its arguments under `args`, or under `arguments` as OpenAI has them'

LONGEST_ID = 100
LONGEST_NAME = 200


class Rejection(TypedDict):
    """Why a call must not be made: `complaints` about its form, or the tool's own `error` in this state."""

    complaints: NotRequired[list[Complaint]]
    error: NotRequired[Json]
    violations: NotRequired[list[Violation]]
    """All preconditions that are broken; the first one's error is `error`."""


def check_by_rule(call: Call, tool: ToolSpec | None) -> list[Complaint]:
    """Return a call's faults by rule; none if its arguments fit the tool's schema."""
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
        return {"error": f"a precondition could not be evaluated: {'; '.join(doubts[:3])}"}
    return None


def read_call(given: object, *, taken: Container[str], number: int) -> tuple[Call, Complaint | None]:
    """Return a call, which may be anything, as a step keeps it, and the faults of its form.

    One without an id, or with one that is taken, is given one by its number.
    """
    fields, unknown = read_form(given)
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
    if unknown or not isinstance(given, Mapping) or not _is_text(name):
        got = f"the key {unknown[:LONGEST_NAME]!r}" if unknown else _describe(given)
        return call, about(call, expected=FORMS, got=got)
    if identifier is not None and not free:
        expected = f"an id of 1 to {LONGEST_ID} characters that no call before has had, or none"
        return call, about(call, expected=expected, got=_describe(identifier))
    return call, None


def read_form(given: object) -> tuple[JsonObject, str]:
    """Return the name, args and id of a call in LangChain's form or one of OpenAI's; or a key that none of them has.

    A key that is there twice, such as `args` and `arguments`, is such a key.
    """
    if type(given) is dict and given.keys() <= _OURS:
        return {key: given[key] for key in ("name", "args", "id") if key in given}, ""
    known = given if isinstance(given, Mapping) else {}
    inner = known.get("function")
    parts = [inner, {key: known[key] for key in known if key != "function"}] if isinstance(inner, Mapping) else [known]
    fields: JsonObject = {}
    for key, value in (pair for part in parts for pair in part.items()):
        name = "args" if key == "arguments" else key
        if key not in KEYS or name in fields:
            return {}, str(key)
        fields[name] = _read_json(value) if key == "arguments" else value
    for key, name in (("call_id", "id"), ("malformed", "args")):
        fields |= {name: fields[key]} if key in fields else {}
    return {key: fields[key] for key in ("name", "args", "id") if key in fields}, ""


def _read_json(arguments: object) -> object:
    """Return OpenAI's arguments, an object or its text; a text that is no JSON as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _is_text(value: object) -> TypeGuard[str]:
    return type(value) is str and (value.isascii() or find_fault(value) is None)


def find_fault(value: object, *, what: str = "it") -> str | None:
    """Return why no checkpoint can store a value: numbers and texts that JSON does not have, too many levels."""
    try:
        check_json(value, what=what)
    except StateError as error:
        return str(error)
    return None


def _describe(value: object) -> str:
    return find_fault(value, what="the value") or excerpt(value)
