"""Decide whether a call may be made: its arguments against the schema, its preconditions in a task state."""

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
"""Keys of a call in the forms of LangChain and OpenAI, and of a call that a step keeps."""
_OURS = frozenset({"name", "args", "id", "type"})
FORMS = 'a call as {"name", "args", "id"}: its arguments under `args`, or under `arguments` as OpenAI has them'

LONGEST_ID = 100
LONGEST_NAME = 200


class Rejection(TypedDict):
    """A refusal: `complaints` about a call's form, or the `error` that the tool itself would return in this state."""

    complaints: NotRequired[list[Complaint]]
    error: NotRequired[Json]
    violations: NotRequired[list[Violation]]
    """Every broken precondition; `error` belongs to the first."""


def check_by_rule(call: Call, tool: ToolSpec | None) -> list[Complaint]:
    """Return the schema violations of a call; an empty list if its arguments are valid."""
    if tool is None:
        return [unknown_tool(call)]
    return [malformed(call)] if "malformed" in call else find_complaints(tool, call["args"])


def check_call(
    call: Call, state: JsonObject, tool: ToolSpec | None, *, unclear: Unclear, calls: Calls, untrusted: Sequence[str]
) -> Rejection | None:
    """Return the reason to refuse a call, or None; see `Toolkit.check`."""
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
    """Normalize any value to a call, and return it with a complaint about its form, if any.

    A missing id, or one in `taken`, is replaced by `call_<number>`.
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
    """Return the `name`, `args` and `id` of a call in LangChain's or OpenAI's form, or its first unknown key.

    A duplicate (`args` beside `arguments`) counts as unknown.
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
    """Parse OpenAI's `arguments`; text that is not JSON, and any other value, is returned as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _is_text(value: object) -> TypeGuard[str]:
    return type(value) is str and (value.isascii() or find_fault(value) is None)


def find_fault(value: object, *, what: str = "it") -> str | None:
    """Return the reason why a value cannot be checkpointed (not JSON, nested too deeply), or None."""
    try:
        check_json(value, what=what)
    except StateError as error:
        return str(error)
    return None


def _describe(value: object) -> str:
    return find_fault(value, what="the value") or excerpt(value)
