"""A sample: one call step of a conversation with its label, as a row (paper, section 4.1); its calls and tools.

Data sets write calls and tools as objects or JSON text, with schemas of several kinds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from ..errors import ToolkitError
from ..state import Json, JsonObject
from ..tools.function_dicts import spec_of_dict
from ..values.digest import digest
from ..values.rows import read_json


class LabelCall(TypedDict):
    name: str
    arguments: JsonObject


Sample = TypedDict(
    "Sample",
    {
        "v": int,
        "id": str,
        "tools": list[JsonObject],
        "messages": list[JsonObject],
        "label": list[LabelCall],
        "also": NotRequired[list[dict[str, dict[str, list[Json]]]]],
        "results": NotRequired[list[Json]],
        "text": NotRequired[str],
        "state": NotRequired[JsonObject],
        "goal": NotRequired[JsonObject],
        "from": list[Json],
    },
)
"""One call step of a conversation.

`tools` and `messages` are OpenAI's, up to the step. `label` has the step's calls, none if no call is right; `also` has
BFCL's allowed values for each call, `{name: {argument: [value, ...]}}`, "" for an optional one. `results` are the
calls' answers, one each; `text` is the assistant's message; `state` the task state before the first message; `goal` the
conditions after the label's calls, as `milestones` (and `minefields`) of a scenario file; `from` the row's history,
oldest first.
"""


def continues(other: Sample, sample: Sample) -> bool:
    """Return whether a sample is a later step of another sample's conversation, with the same goal."""
    length = len(sample["messages"])
    is_same = other.get("goal") == sample.get("goal") and other.get("state") == sample.get("state")
    return is_same and len(other["messages"]) > length and other["messages"][:length] == sample["messages"]


def goal_key(row: Mapping[str, Any]) -> str:
    return digest([row["goal"], row.get("state")]) if row.get("goal") else ""


class Bad(NamedTuple):
    """An unusable row: `file:line`, and the reason."""

    where: str
    reason: str


# calls and tools ---------------------------------------------------------------------------------------

_NAMES = ("name", "api", "api_name", "tool_name", "function", "tool", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "kwargs")
"""Keys under which data sets store a call's name and its arguments."""

_TYPE = re.compile(r"\s*(\w*)\s*(\[?)")
_HOLDERS = {**dict.fromkeys(("list", "set", "tuple", "iterable", "sequence"), "array"), "dict": "object"}
"""Schema types of Python types with brackets, such as `List[int]`; others become `any`."""


def call_parts(given: Any) -> tuple[str, Any] | None:
    """Return a call's name and arguments, None if one is missing; data sets use various keys."""
    plain = given if isinstance(given, Mapping) else {}
    plain = plain["function"] if isinstance(plain.get("function"), Mapping) else plain
    name = next((plain[key] for key in _NAMES if isinstance(plain.get(key), str)), None)
    key = next((key for key in _ARGUMENTS if key in plain), None)
    return (name, plain[key]) if name and key else None


def read_call(given: Any) -> JsonObject:
    """Return a call as `{"name", "arguments"}`; OpenAI's form is accepted. Raises ValueError."""
    plain = given if isinstance(given, Mapping) else {}
    plain = plain["function"] if isinstance(plain.get("function"), Mapping) else plain
    parts = call_parts(plain) or call_parts({**plain, _ARGUMENTS[-1]: {}})
    if parts is None:
        raise ValueError("a call without a name")
    name, arguments = parts
    if isinstance(arguments, str):
        arguments = read_json(arguments or "{}", what=f"the arguments of {name}")
    if not isinstance(arguments, dict | None):
        raise ValueError(f"the arguments of {name} are no object")
    return {"name": name, "arguments": arguments or {}}


def read_tools(given: Any) -> list[JsonObject]:
    """Return tools in any known format as OpenAI's function dicts. Raises ValueError."""
    given = read_json(given, what="tools") if isinstance(given, str) else given
    given = [given] if isinstance(given, Mapping) else given or []
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise ValueError("tools are no list of objects")
    return [_read_tool(each) for each in given]


def _read_tool(given: Mapping[str, Any]) -> JsonObject:
    plain = {**given.get("function", given)}
    parameters = plain.get("parameters")
    if isinstance(parameters, Mapping) and parameters.get("type") == "object" and "function" in given:
        return dict(given)
    if isinstance(parameters, Mapping) and _is_flat(parameters):
        plain["parameters"] = _read_flat(parameters)
    try:
        spec = spec_of_dict(plain, where="tools")
    except ToolkitError as error:
        raise ValueError(str(error)) from None
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _is_flat(parameters: Mapping[str, Any]) -> bool:
    """Return whether parameters are in xLAM's format: names to schemas, without an object schema around them."""
    inner = parameters.get("properties")
    described = (isinstance(each, Mapping) and {"type", "description"} & each.keys() for each in parameters.values())
    return bool(parameters) and all(described) and not (isinstance(inner, Mapping) and "type" not in inner)


def _read_flat(parameters: Mapping[str, Any]) -> JsonObject:
    """Return xLAM's parameters as a schema; the type `str, optional` is an optional string."""
    known: JsonObject = {}
    required: list[str] = []
    for name, given in parameters.items():
        text = str(given.get("type", "any")).lower()
        word, bracket = _TYPE.match(text).groups()  # type: ignore[union-attr]
        known[name] = {**given, "type": _HOLDERS.get(word, "any") if bracket else word or "any"}
        if "optional" not in text.rpartition(",")[2] and "default" not in given:
            required.append(name)
    return {"type": "object", "properties": known, "required": required}
