"""Complaints of rules about a value or a call, and the parts left to a model (paper, section 3.1 and appendix A.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

from jsonschema.protocols import Validator

from ..state import Call, Complaint, Json, JsonObject
from ..values.digest import Finding
from ..values.identity import cache_by_identity
from ..values.places import excerpt, pointer, short_pointer
from .findings import find_unstorable, findings
from .formats import FORMATS
from .reading import Said, applying, follow_inside, leads_nowhere, member_schemas
from .rules import accepts, canonical, check, extra_names, rules_of, rules_of_part

MAX_COMPLAINTS = 20
_NAMING = ("properties", "patternProperties")


class Described(Protocol):
    """An object with a name and a schema of its arguments: a tool."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments object."""


def find_complaints(tool: Described, args: JsonObject) -> list[Complaint]:
    """Validate a call's arguments against the tool's schema.

    Defaults are not filled in. A top-level object schema without `additionalProperties` is closed, nested ones are open
    as in JSON Schema. Malformed parts of a schema are ignored.

    Returns:
        At most `MAX_COMPLAINTS` complaints in the schema's order, none if the arguments are valid.
    """
    if not isinstance(args, dict):
        found = [Finding("", "an object of arguments", excerpt(args))]
    elif non_json := find_unstorable(args):
        found = [non_json]
    else:
        found = [*_find_unknown(tool.parameters, args), *_find_errors(tool.parameters, args)]
        accepts = getattr(tool, "accepts", None)  # checks beyond the schema: an invalid day, a user's validator
        found = found or [Finding(*each) for each in (accepts(args) if accepts else ())]
    return [
        {"tool": tool.name, "path": path, "expected": expected, "got": got, "source": "rule"}
        for path, expected, got in dict.fromkeys(found[:MAX_COMPLAINTS])
    ]


def describe_finding(path: str, expected: str, got: str) -> str:
    """Return an error in a value as a sentence, `/a/0: expected 1, got 2`; without a path for the whole value."""
    return f"{path and f'{path}: '}expected {expected}, got {got}"


def describe_complaint(complaint: Complaint) -> str:
    """Return a complaint as a sentence without the tool's name."""
    return describe_finding(complaint["path"], complaint["expected"], complaint["got"])


def unknown_tool(call: Call) -> Complaint:
    return about(call, expected="the name of one of the given tools", got=excerpt(call["name"]))


def malformed(call: Call) -> Complaint:
    """Return the complaint about a call whose arguments are not a JSON object."""
    return about(call, expected="arguments as one JSON object", got=excerpt(call.get("malformed", "")))


def about(call: Call, *, expected: str, got: str) -> Complaint:
    """Return a rule's complaint about a call as a whole."""
    return {"tool": str(call["name"]), "path": "", "expected": expected, "got": got, "source": "rule"}


def find_faults(schema: JsonObject, value: Json) -> list[str]:
    """Validate a value and return its errors, one line each: `/a/0: expected ..., got ...`.

    The schema (JSON Schema 2020-12) is compiled once and cached: never change it in place.
    """
    non_json = find_unstorable(value)
    found = [non_json] if non_json else _find_errors(schema, value)
    lines = (describe_finding(*each) for each in found[:MAX_COMPLAINTS])
    return list(dict.fromkeys(lines))


def _find_errors(schema: Any, value: Json) -> list[Finding]:
    errors = islice(check(rules_of(schema), value, is_json=True), MAX_COMPLAINTS)
    return [finding for error in errors for finding in findings(error)]


def _find_unknown(schema: Any, args: JsonObject) -> list[Finding]:
    closed = _close(schema)
    unknown = [] if closed is None else extra_names(args, closed)
    return [Finding(short_pointer((name,)), "no argument of this name", excerpt(args[name])) for name in unknown]


@cache_by_identity(4096)
def _close(schema: Any) -> JsonObject | None:
    """Return a schema of the names that a top-level schema defines; None if it is open, or states how closed it is."""
    root = rules_of(schema).schema
    says = ("additionalProperties", "unevaluatedProperties")
    if not isinstance(root, dict) or any(key in root for key in says):
        return None
    parts = Said(root, root).parts()
    if any(leads_nowhere(part, root) or any(part.get(key, False) is not False for key in says) for part in parts):
        return None
    names = {key: {name: True for part in parts for name in part.get(key, ())} for key in _NAMING}
    return names if any(names.values()) or any(part.get("type") == "object" for part in parts) else None


ERROR_NAMES = ("error", "errors")


def is_error_branch(branch: Any, root: Any) -> bool:
    """Return whether a schema requires a member `error` or `errors` that is not always null."""
    said = Said(branch, root)
    return any(said.member(name).schema != {"type": "null"} for name in said.required() if name in ERROR_NAMES)


def is_error_body(schema: JsonObject, value: Json) -> bool:
    named = [name for name in ERROR_NAMES if value.get(name)] if isinstance(value, dict) else []
    parts = Said(schema, schema).parts(sure=True) if named else []
    branches: list[Any] = next((part[key] for part in parts for key in ("oneOf", "anyOf") if key in part), [])
    plain = [branch for branch in branches if not is_error_branch(branch, schema)]
    covering = (branch for branch in plain if not {*named}.isdisjoint(Said(branch, schema).names()))
    rules = rules_of(schema)
    return 0 < len(plain) < len(branches) and not any(
        accepts(rules_of_part(rules, branch), value) for branch in covering
    )


DESCRIPTION_CHARS = 2_000
MAX_LISTED = 8
"""Most undecided paths listed inside one argument; more are replaced by the path of the argument."""

_OPTIONS = re.compile(r"(?i)\b(?:one of|either|options|choices|(?:allowed|possible|valid|accepted) values)\b([^.;]+)")
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{1,60})'|\"([^\"\n]{1,60})\"|`([^`\n]{1,60})`)(?!\w)")
_FORMAT = re.compile(r"\bformat|\bform of\b|\babbreviat|\biso\b|yyyy|\bcode\b", re.IGNORECASE)


def find_undecided(parameters: JsonObject, args: JsonObject) -> list[str]:
    """Return JSON Pointers to the arguments that rules cannot decide: free text, unbounded numbers, unknown names.

    Rules decide booleans, null, enum, const, checked formats, numbers between two bounds, a schema's default, and a
    text that the description lists as an option. The arguments must be valid.
    """
    rules = rules_of(parameters)
    return _find_open(rules, args, (), [rules.schema])


def find_chosen(parameters: JsonObject, args: JsonObject, places: Sequence[str]) -> list[str]:
    """Return JSON Pointers to optional arguments with decided values, for which it is open whether to give them.

    Flags are excluded: the origins of values decide them. The arguments must be valid; `places` is the result of
    `find_undecided`.
    """
    rules = parameters.get("properties", {})
    free = [
        name for name in args if name not in parameters.get("required", ()) and not isinstance(args[name], bool | None)
    ]
    usual = (rules[name].get("default") if isinstance(rules.get(name), dict) else None for name in free)
    changed = [pointer((name,)) for name, default in zip(free, usual, strict=True) if default != args[name]]
    return [path for path in changed if not any(leads_into(place, path) for place in places)]


def prescribes_format(parameters: JsonObject, place: str) -> bool:
    """Return whether the schema at a JSON Pointer, or of the argument around it, prescribes how a value is written."""
    rules = parameters.get("properties", {})
    name = next((name for name in rules if leads_into(place, pointer((name,)))), None)
    return name is not None and _names_format(rules[name])


@cache_by_identity(4096)
def _names_format(schema: Any) -> bool:
    return _FORMAT.search(json.dumps(schema, default=str)) is not None


def leads_into(place: str, outer: str) -> bool:
    """Return whether a JSON Pointer equals another or is below it."""
    return place.startswith(outer) and place[len(outer) : len(outer) + 1] in ("", "/")


def _find_open(rules: Validator, value: Json, path: tuple[str | int, ...], schemas: list[Any]) -> list[str]:
    """Return the undecided paths in `value`, to which `schemas` apply; if there are many, the path of the whole."""

    def fits(option: Any) -> bool:
        return accepts(rules_of_part(rules, option), value)

    parts = [part for part, _ in applying(schemas, rules.schema, follow_inside, perhaps=fits)]
    if any(_decides(part, value) for part in parts) or value is None or isinstance(value, bool):
        return []
    if not isinstance(value, dict | list):
        return [] if isinstance(value, int | float) and _bounded(parts) else [pointer(path)]
    found: list[str] = []
    members: Iterable[tuple[str | int, Json]] = value.items() if isinstance(value, dict) else enumerate(value)
    for token, item in members:
        inside = [inner for part in parts for inner in member_schemas(part, token)]
        found += _find_open(rules, item, (*path, token), inside)
    return found if len(found) <= MAX_LISTED or not path else [pointer(path)]


def _decides(schema: JsonObject, value: Json) -> bool:
    if "enum" in schema or "const" in schema:
        return True
    if isinstance(value, str) and schema.get("format") in FORMATS:
        return True
    if isinstance(value, str) and value.strip().casefold() in _options(str(schema.get("description", ""))):
        return True
    return "default" in schema and canonical(schema["default"]) == canonical(value)


@lru_cache(maxsize=2_048)
def _options(description: str) -> frozenset[str]:
    """Return the values that a description lists: two or more quoted texts, or those after `one of`, `options are`."""
    text = description[:DESCRIPTION_CHARS]
    quoted = [next(filter(None, each)) for each in _QUOTED.findall(text)]
    listed = [re.split(r"[,|/]|\bor\b|\band\b|\bare\b|[:(]", each) for each in _OPTIONS.findall(text)]
    named = [*(quoted if len(quoted) > 1 else ()), *(part for parts in listed if len(parts) > 1 for part in parts)]
    return frozenset(each.strip(" \t\n'\"`()[]").casefold() for each in named)


def _bounded(schemas: list[JsonObject]) -> bool:
    below = any(key in schema for schema in schemas for key in ("minimum", "exclusiveMinimum"))
    return below and any(key in schema for schema in schemas for key in ("maximum", "exclusiveMaximum"))


MAX_CHARS = 300
KNOWN_CHARS = 8_000
LEAST_WORDS = 4
"""Fewest words that a clause must have without its advice to be kept."""

_ADVICE = re.compile(
    r"""\b(?:use|try|meant?|such\ as|for\ (?:example|instance)|e\.?g\b|i\.?e\b|like\ (?=["'`\u2018\u201cA-Z])|instead
    |rather|suggest\w*|recommend\w*|consider|perhaps|maybe|correct\ \w+\ (?:is|would)|actual\w*\ (?:is|\w+\ is)
    |(?:change|set|replace|convert|correct|spell|write|choose|select|pick|give|provide|enter|put|pass|specify)
    \ (?!by\b|an?\b)
    |(?:should|must|ought\ to|needs?\ to|has\ to|would)\ (?:be|have|read|say|hold|contain|equal)
    \ (?!an?\b|in\ the\b|of\b|not\b)
    |expected\ (?!an?\b)
    |(?:task|user|conversation|request|results?|they)\ (?:says?|said|states?|ask(?:s|ed)\ for|want(?:s|ed)|gives?|gave
    |names?|mention(?:s|ed)?|is|was)\ (?!for\ it\b|none\b|nothing\b|no\b|an?\b))
    .*?(?=[.;!?](?:\s|$)|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_VALUE = re.compile(
    r"""(?<!\w)(["'`\u2018\u201c\u00ab])(?P<quoted>.{1,200}?)["'`\u2019\u201d\u00bb](?!\w)
    |(?<![\w.])(?P<bare>\$?\w*\d[\w.,:/@%-]*\w|\d|[^\W\d_]+[.@/_\\][\w.@/\\-]*\w|[A-Z][\w'&-]*)""",
    re.VERBOSE,
)
_PLAIN = re.compile("the|an?|its?|this|that|not?|there|neither|only|value|argument|optional|iso|iata|id|url|utc")
_DATE_LETTERS = re.compile(r"[YMDHSymdhs:/. -]{2,20}")


def without_hints(problem: str, *, known: str) -> str:
    """Return a problem in one line, without advice and without values that the call does not contain.

    `known` are the call's arguments as text, whose values may be named.
    """
    known = known[:KNOWN_CHARS].casefold()

    def mask_unknown(found: re.Match[str]) -> str:
        value = found["quoted"] or found["bare"]
        plain = value.casefold().strip("., ")
        written = plain and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", known)
        return found[0] if written or _PLAIN.fullmatch(plain) or _DATE_LETTERS.fullmatch(value) else "…"

    kept = []
    for clause in re.split(r"(?<=[.;!?]) ", " ".join(problem.split())[:MAX_CHARS]):
        rest, advised = _ADVICE.subn("", clause)
        if not advised or len(rest.split()) >= LEAST_WORDS:
            kept.append(_VALUE.sub(mask_unknown, rest).strip(" ,;:(-"))
    return " ".join(filter(None, kept)) or "it does not fit its description"
