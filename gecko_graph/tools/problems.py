"""What a source of tools leaves open, contradicts, or writes in a way that no rule can use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..contracts.contract import Contract
from ..errors import did_you_mean
from ..schemas.complaints import find_faults
from ..schemas.partial import Partial, sure_findings
from ..schemas.pattern import compile_pattern
from ..schemas.subschemas import walk
from ..state import JsonObject
from .openapi.simplify import PREFIX
from .spec import ToolSpec

_BARE = re.compile(r"(?:state|before|args|call|result)(?:\.[A-Za-z_]\w*|\['[^']*'\])+")
"""A text that is an expression in all but its braces."""

ProblemKind = Literal[
    "result", "description", "parameter", "effect", "default", "pattern", "example", "contract", "broken", "size"
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that a tool's source leaves open, contradicts, or writes in vain.

    Args:
        tool: Name of the tool; also of one that is left out because it is broken.
        kind: `result` (no result schema), `description` (none), `parameter` (one without a description), `effect`
            (neither read nor write), `default` (outside its own enum), `pattern` (cannot be read, so decides nothing),
            `example` (does not fit the schemas), `contract` (a part comes to nothing, or contradicts a schema) or
            `broken` (a part of the document cannot be read, or contradicts another, and is left out), or `size` (of
            all tools: more than a provider takes, or a prompt holds).
        message: What is missing, and what happens because of it.
    """

    tool: str
    kind: ProblemKind
    message: str


def find_problems(tools: Iterable[ToolSpec]) -> list[Problem]:
    """Return all problems of all tools, tool by tool."""
    return [problem for tool in tools for problem in _tool_problems(tool)]


def _tool_problems(tool: ToolSpec) -> Iterator[Problem]:
    if tool.result is None:
        yield Problem(tool.name, "result", "no result schema: any JSON passes as its result")
    if not tool.description.strip():
        yield Problem(tool.name, "description", "no description: the planner has only its name to go by")
    if tool.effect is None:
        yield Problem(tool.name, "effect", "neither read nor write: treated as a write")
    for name, one in tool.parameters.get("properties", {}).items():
        if not _has_description(one, tool.parameters):
            yield Problem(tool.name, "parameter", f"the parameter {name!r} has no description")
    for schema in (tool.parameters, tool.result or {}):
        yield from _schema_problems(tool.name, schema)
    yield from _example_problems(tool)
    yield from _contract_problems(tool)


def _has_description(schema: Any, whole: JsonObject) -> bool:
    if not isinstance(schema, dict):
        return False
    referred = whole.get("$defs", {}).get(str(schema.get("$ref", "")).removeprefix(PREFIX), {})
    return any(isinstance(one, dict) and one.get("description") for one in (schema, referred))


def _schema_problems(tool: str, schema: JsonObject) -> Iterator[Problem]:
    for one in walk(schema):
        choices = (
            [json.dumps(choice, sort_keys=True) for choice in one["enum"]]
            if isinstance(one.get("enum"), list)
            else None
        )
        if "default" in one and choices is not None and json.dumps(one["default"], sort_keys=True) not in choices:
            shown = json.dumps(one["default"])[:60]
            yield Problem(tool, "default", f"the default {shown} is outside its own enum: it is never filled in")
        for pattern in _patterns(one):
            if compile_pattern(pattern) is None:
                yield Problem(tool, "pattern", f"the pattern {pattern[:60]!r} cannot be read: it decides nothing")


def _patterns(schema: JsonObject) -> Iterator[str]:
    if isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    if isinstance(schema.get("patternProperties"), dict):
        yield from schema["patternProperties"]


def _example_problems(tool: ToolSpec) -> Iterator[Problem]:
    for number, example in enumerate(tool.examples, 1):
        here = f"of example {number} "
        if wrong := find_faults(tool.parameters, example.args):
            yield Problem(tool.name, "example", f"the arguments {here}do not fit the parameters: {wrong[0]}")
        if tool.result is not None and (wrong := find_faults(tool.result, example.result)):
            yield Problem(tool.name, "example", f"the result {here}does not fit its schema: {wrong[0]}")


def _contract_problems(tool: ToolSpec) -> Iterator[Problem]:
    if tool.contract is None:
        return
    for message in _contract_notes(tool, tool.contract):
        yield Problem(tool.name, "contract", message)
    if tool.result is None:
        return
    foreseen = tool.contract.foreseen()
    yield from _unknown_result_keys(tool.name, tool.result, foreseen)
    wrong = next((found for result in foreseen if (found := sure_findings(tool.result, result))), None)
    if wrong is None:
        return
    what = "what its contract returns" if "returns" in tool.contract.data else "its contract has no `returns`, and null"
    where = f"expected {wrong[0].expected} at {wrong[0].path}"
    yield Problem(tool.name, "contract", f"{what} can never fit the result schema ({where}): one of the two is wrong")


def _contract_notes(tool: ToolSpec, contract: Contract) -> Iterator[str]:
    """Yield messages for the parts of a contract that load, and do not do what their writer meant."""
    if tool.reads and "effects" in contract.data:
        yield "its effects are dropped: a read changes nothing"
    if not tool.reads and "observes" in contract.data:
        yield "its `observes` is never looked at: only a read observes"
    for name in contract.unused_lets():
        yield f"the let {name!r} is never used"
    for check in contract.constant_checks():
        yield f"the check {check[:60]!r} names nothing: it always comes out the same"
    parts = {key: contract.data[key] for key in ("let", "effects", "returns", "observes") if key in contract.data}
    for text in _texts(parts):
        if _BARE.fullmatch(text):
            yield f'{text[:60]!r} is read as plain text: write "{{{{ {text[:60]} }}}}" for its value'


def _texts(data: Any) -> Iterator[str]:
    """Return the texts of a contract's part in which only `{{ }}` is filled in."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list | tuple):
        members = data.items() if isinstance(data, dict) else enumerate(data)
        for key, member in members:
            if key not in ("when", "for_each", "check", "as", "op"):
                yield from _texts(member)


def _unknown_result_keys(tool: str, schema: JsonObject, foreseen: Iterable[Partial]) -> Iterator[Problem]:
    """Yield a problem for each key of the contract's result that the result schema does not name."""
    known = schema.get("properties")
    if not isinstance(known, dict) or schema.keys() & {"allOf", "anyOf", "oneOf", "$ref", "patternProperties"}:
        return
    written = {key for result in foreseen if isinstance(result.value, dict) for key in result.value}
    if "additionalProperties" not in schema:
        for key in sorted(written - known.keys()):
            hint = did_you_mean(key, known)
            yield Problem(tool, "contract", f"it returns {key!r}, which the result schema does not name{hint}")
