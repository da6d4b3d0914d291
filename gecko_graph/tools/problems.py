"""Report gaps, contradictions and ineffective parts of tools, and select some of too many tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, Literal

from ..contracts.contract import Contract
from ..contracts.language.examine import find_misfit, of_schema
from ..errors import ToolkitError, did_you_mean, install
from ..schemas.complaints import find_faults
from ..schemas.formats import compile_pattern
from ..schemas.reading import Said
from ..schemas.subschemas import walk
from ..state import JsonObject
from .spec import ToolSpec, format_names

_BARE = re.compile(r"(?:state|before|args|call|result)(?:\.[A-Za-z_]\w*|\['[^']*'\])+")
"""Text that would be an expression inside braces."""

MAX_TOOLS = 128
"""Most tools in one request to OpenAI; other providers have about the same limit."""
SHOWN_TOOLS = 64
"""Default of `max_tools`: a planner with the extra `retrieval` sees at most this many tools."""
WINDOW_TOKENS = 128_000
CHARS_PER_TOKEN = 4

ProblemKind = Literal[
    "result", "description", "parameter", "effect", "default", "pattern", "example", "contract", "broken", "size"
]


@dataclass(frozen=True, slots=True)
class Problem:
    """A gap, contradiction or ineffective part in a source of tools.

    Args:
        tool: Name of the tool, also of one that is left out as broken.
        kind: `result` (no result schema), `description` (none), `parameter` (one without a description), `effect`
            (neither read nor write), `default` (outside its own enum), `pattern` (unreadable, so it is not checked),
            `example` (does not fit the schemas), `contract` (a part without effect, or against a schema), `broken` (a
            part of the document is unreadable or contradictory, and left out), or `size` (of all tools: more than a
            provider accepts or a prompt holds).
        message: The missing part, and the consequence.
    """

    tool: str
    kind: ProblemKind
    message: str


def find_problems(tools: Iterable[ToolSpec]) -> list[Problem]:
    return [
        Problem(tool.name, kind, message)
        for tool in tools
        for kind, message in (*_wire_problems(tool), *_problems_of(tool))
    ]


def _wire_problems(tool: ToolSpec) -> Iterator[tuple[ProblemKind, str]]:
    if tool.binding is not None:
        from .openapi.fields import find_unsendable  # here, because httpx is slow to import

        if why := find_unsendable(tool):
            yield "broken", why
        for name, (place, wire) in tool.binding.places.items():
            if place == "path" and f"{{{wire}}}" not in tool.binding.path:
                yield "parameter", f"the parameter {name!r} is never sent: its path does not have {{{wire}}}"


def _problems_of(tool: ToolSpec) -> Iterator[tuple[ProblemKind, str]]:
    if tool.result is None:
        yield "result", "no result schema: any JSON passes as its result"
    if not tool.description.strip():
        yield "description", "no description: the planner sees only its name"
    if tool.effect is None:
        yield "effect", "neither read nor write: treated as a write"
    for name, schema in tool.parameters.get("properties", {}).items():
        if not any(part.get("description") for part in Said(schema, tool.parameters).parts()):
            yield "parameter", f"the parameter {name!r} has no description"
    for part in (*walk(tool.parameters), *walk(tool.result or {})):
        yield from _schema_problems(part)
    yield from (("example", note) for note in _example_notes(tool))
    if tool.contract is not None:
        notes = (*_contract_notes(tool, tool.contract), *_result_notes(tool.contract, tool.result))
        yield from (("contract", note) for note in notes)


def _schema_problems(schema: JsonObject) -> Iterator[tuple[ProblemKind, str]]:
    if "default" in schema and isinstance(schema.get("enum"), list):
        values = (schema["default"], *schema["enum"])
        default, *choices = (json.dumps(one, sort_keys=True, ensure_ascii=False) for one in values)
        if default not in choices:
            yield "default", f"the default {default[:60]} is not in its enum, so it is never used"
    named = schema.get("patternProperties")
    for pattern in (schema.get("pattern"), *(named if isinstance(named, dict) else ())):
        if isinstance(pattern, str) and compile_pattern(pattern) is None:
            yield "pattern", f"the pattern {pattern[:60]!r} cannot be read, so it is ignored"


def _example_notes(tool: ToolSpec) -> Iterator[str]:
    for number, example in enumerate(tool.examples, 1):
        if wrong := find_faults(tool.parameters, example.args):
            yield f"the arguments of example {number} do not fit the parameters: {wrong[0]}"
        if tool.result is not None and (wrong := find_faults(tool.result, example.result)):
            yield f"the result of example {number} does not fit its schema: {wrong[0]}"


def _contract_notes(tool: ToolSpec, contract: Contract) -> Iterator[str]:
    """Yield messages for parts of a contract that are valid but probably not what their author meant."""
    if tool.reads and "effects" in contract.data:
        yield "its effects are dropped: a read changes nothing"
    if not tool.reads and "observes" in contract.data:
        yield "its `observes` is ignored: only reads observe"
    parts = {key: contract.data[key] for key in ("let", "effects", "returns", "observes") if key in contract.data}
    for text in _texts(parts):
        if _BARE.fullmatch(text):
            yield f'{text[:60]!r} is read as plain text: write "{{{{ {text[:60]} }}}}" for its value'


def _texts(data: Any) -> Iterator[str]:
    """Yield the texts of a contract in which only `{{ }}` is evaluated."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list | tuple):
        members = data.items() if isinstance(data, dict) else enumerate(data)
        for key, member in members:
            if key not in ("when", "for_each", "check", "as", "op"):
                yield from _texts(member)


def _result_notes(contract: Contract, schema: JsonObject | None) -> Iterator[str]:
    """Yield messages for contract results that the result schema does not name or allow."""
    if schema is None or contract.returned is None:
        return
    known = schema.get("properties")
    is_open = schema.keys() & {"allOf", "anyOf", "oneOf", "$ref", "patternProperties", "additionalProperties"}
    if isinstance(known, dict) and not is_open:
        for key in sorted({*contract.returned.keys} - known.keys()):
            yield f"it returns {key!r}, which the result schema does not name{did_you_mean(key, known)}"
    if wrong := find_misfit(contract.returned, of_schema(schema)):
        if "returns" in contract.data:
            yield f"its contract's result can never fit the result schema ({wrong}): one of the two is wrong"
        else:
            yield f"it has no `returns`, and null can never fit the result schema ({wrong}): the result is left open"


def select_tools(
    tools: Sequence[ToolSpec], patterns: Mapping[str, Iterable[str] | str], broken: Iterable[Problem] = ()
) -> list[ToolSpec]:
    """Return the tools that match a pattern of every given kind, in order; see `Toolkit.select`.

    `broken` are omitted parts of the source; the error for such a name gives the reason.
    """
    chosen = list(tools)
    for kind, given in patterns.items():
        values_of, matches = _KINDS[kind]
        wanted = [given] if isinstance(given, str) else list(given)
        known = dict.fromkeys(value for tool in tools for value in values_of(tool))
        hit: set[str] = set()
        for pattern in wanted:
            if not isinstance(pattern, str):
                raise ToolkitError(f"select: {kind}: expected text, got {type(pattern).__name__}")
            wild = {*"*?["} & {*pattern}  # plain names are looked up: there may be thousands
            found = {each for each in known if matches(each, pattern)} if wild else {pattern} & known.keys()
            if not found:
                reason = next((f"; {problem.message}" for problem in broken if problem.tool == pattern), "")
                near = did_you_mean(pattern.replace("*", ""), known) or f"; there are {format_names([*known])}"
                raise ToolkitError(f"select: {kind}: {pattern!r} matches nothing{reason or near}")
            hit |= found
        if wanted:
            chosen = [tool for tool in chosen if not hit.isdisjoint(values_of(tool))]
    if tools and not chosen:
        kinds = ", ".join(kind for kind, given in patterns.items() if given)
        raise ToolkitError(f"select: no tool matches all of {kinds}; each of them matches others")
    return chosen


def _matches_path(path: str, pattern: str) -> bool:
    """Return whether a path template matches: `*` is part of a segment, `**` any number of segments."""
    parts = re.split(r"(/\*\*|\*\*|\*)", pattern)
    wild = {"/**": r"(?:/.*)?", "**": ".*", "*": "[^/]*"}
    return re.fullmatch("".join(wild.get(part, re.escape(part)) for part in parts), path) is not None


_KINDS: dict[str, tuple[Callable[[ToolSpec], Sequence[str]], Callable[[str, str], bool]]] = {
    "names": (lambda tool: [tool.name], str.__eq__),
    "match": (lambda tool: [tool.name], fnmatchcase),
    "tags": (lambda tool: tool.tags, fnmatchcase),
    "paths": (lambda tool: [tool.binding.path] if tool.binding else [], _matches_path),
}


def find_size_problems(tools: Sequence[ToolSpec]) -> Iterator[Problem]:
    """Yield a problem if there are more tools than a provider accepts, or half a window or a prompt holds.

    With the extra `retrieval` there is none, since the planner sees only fitting tools.
    """
    if find_spec("bm25s") is not None:
        return
    tokens = len(json.dumps([[tool.name, tool.description, tool.parameters] for tool in tools])) // CHARS_PER_TOKEN
    hint = f"choose some with select (--only), or have them found: {install('retrieval')}"
    if tags := Counter(tag for tool in tools for tag in tool.tags).most_common(5):
        hint += f": the largest tags are {', '.join(f'{tag} ({number})' for tag, number in tags)}"
    if len(tools) > MAX_TOOLS:
        yield Problem("all tools", "size", f"{len(tools)} tools, and providers accept at most {MAX_TOOLS}; {hint}")
    if tokens > WINDOW_TOKENS // 2 or SHOWN_TOOLS < len(tools) <= MAX_TOOLS:
        share = f"{100 * tokens // WINDOW_TOKENS} % of a context window of {WINDOW_TOKENS // 1000}k"
        estimate = f"about {tokens // 1000}k tokens (estimated: characters / {CHARS_PER_TOKEN})"
        yield Problem("all tools", "size", f"their schemas take {estimate} of every planner prompt, {share}; {hint}")
