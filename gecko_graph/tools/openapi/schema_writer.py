"""JSON Schemas as an OpenAPI 3.1 document holds them: what several tools share stands once, in `components/schemas`.

Reading a document writes many definitions out in each tool that uses them, so a tool's schema is large and most of it
stands in other tools, too. Equal parts are found by numbering them bottom-up, annotations apart, since the same object
often has another description in each place. A part that is worth it becomes a component marked `x-gecko-inline`, which
is written out again when the document is read; an entry of a schema's own `$defs` becomes a component without the mark.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...schemas.complaints import find_faults
from ...schemas.subschemas import ANNOTATIONS, rebuild, walk
from ...state import Json, JsonObject
from ...values.leaves import scalars_of
from ..names import unique_name
from .schema_reader import ADDED
from .simplify import PREFIX, defs_of, with_defs

COMPONENTS = "#/components/schemas/"
_STEPS = 16
_NOT_WRITTEN = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "$defs", "definitions")
_REFERENCE_CHARS = 60
"""What a reference to a component costs."""


class Numbered(dict[str, Any]):
    """A schema in short, until `SchemaWriter.write`: the part's number under `#`, and the annotations of this place."""


@dataclass(slots=True)
class _Part:
    """What equal schemas have in common: all but their annotations. Schemas inside are `Numbered`."""

    keywords: JsonObject
    chars: int
    uses: int = 0
    name: str = ""


class SchemaWriter:
    """Numbers schemas one by one, then writes them with the components that they share."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._numbers: dict[str, int] = {}
        self._sure: dict[tuple[int, str], bool] = {}
        self._components: dict[str, Any] = {}
        self._known: dict[tuple[str, str], str] = {}
        self._seen: dict[int, tuple[Any, tuple[str, list[str]]]] = {}
        self._hashed: dict[tuple[tuple[str, int], ...], dict[str, str]] = {}
        self._defs: JsonObject = {}
        self._hashes: dict[str, str] = {}
        self._waiting: list[tuple[str, str]] = []

    def number(self, schema: Any, *, within: JsonObject | None = None, name: str = "") -> Any:
        """Return a schema in short; `write` writes it out.

        Its `$defs` are those of the schema `within` which it stands; `name` is for a component that is made of it.
        """
        holder = within if within is not None else schema
        defs = holder.get("$defs") if isinstance(holder, dict) else None
        self._defs = defs if isinstance(defs, dict) else {}
        self._hashes = self._hash_definitions(self._defs)
        numbered = self._use(self._number(schema), name)
        while self._waiting:
            definition, component = self._waiting.pop()
            one = self._use(self._number(self._defs[definition]), component)
            if isinstance(one, Numbered) and component != definition:
                one["x-gecko-name"] = definition
            self._components[component] = one
        return numbered

    def _use(self, numbered: Any, name: str) -> Any:
        if isinstance(numbered, Numbered):
            part = self._parts[numbered["#"]]
            part.uses, part.name = part.uses + 1, part.name or name
        return numbered

    def _number(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        plain = {key: one for key, one in schema.items() if key not in _NOT_WRITTEN}
        reference = str(plain.pop("$ref", ""))
        keywords = _without_refused(rebuild(plain, self._number))
        if reference.startswith(PREFIX) and reference.removeprefix(PREFIX) in self._defs:
            keywords["$ref"] = COMPONENTS + self._component(reference.removeprefix(PREFIX))
        numbered = Numbered({key: keywords.pop(key) for key in plain if key in ANNOTATIONS and key in keywords})
        text = json.dumps(keywords)
        number = self._numbers.setdefault(text, len(self._parts))
        if number == len(self._parts):
            self._parts.append(_Part(keywords, len(text)))
            for name, child in _numbered_in(keywords):
                self._use(child, name)
        if "default" in numbered and not self._is_sure_default(schema, number):
            numbered["x-gecko-default"] = numbered.pop("default")
        numbered["#"] = number
        return numbered

    def write(self, document: Json) -> tuple[Json, JsonObject]:
        """Return a document with its numbered schemas written out, and the components that they refer to."""
        shared = self._share()
        inline = {name: {"x-gecko-inline": True, **self._parts[number].keywords} for number, name in shared.items()}
        return _written(document, self._parts, shared), _written({**self._components, **inline}, self._parts, shared)

    def _share(self) -> dict[int, str]:
        """Return number and name of the parts that are worth a component: inner parts have lower numbers."""
        shared: dict[int, str] = {}
        for part in reversed(self._parts):
            for name, child in _numbered_in(part.keywords):
                self._parts[child["#"]].name = self._parts[child["#"]].name or name or part.name
        for number, part in enumerate(self._parts):
            inside = [child["#"] for _, child in _numbered_in(part.keywords)]
            part.chars += sum(self._parts[child].chars for child in inside if child not in shared)
            if (part.uses - 1) * part.chars > (part.uses + 1) * _REFERENCE_CHARS:
                wanted = re.sub(r"[^A-Za-z0-9._-]", "_", part.name) or "schema"
                shared[number] = unique_name(wanted, {*self._components, *shared.values()})
        return shared

    def _hash_definitions(self, defs: JsonObject) -> dict[str, str]:
        """Return a hash for each definition, of it and of what it leads to in a few steps."""
        key = tuple((name, id(one)) for name, one in defs.items())
        if key not in self._hashed:
            own = {name: self._hash_definition(one) for name, one in defs.items()}
            needs = {name: [one for one in others if one in defs] for name, (_, others) in own.items()}
            hashes = {name: text for name, (text, _) in own.items()}
            for _ in range(min(len(defs), _STEPS)):
                hashes = {name: _hash(hashes[name], *(hashes[one] for one in others)) for name, others in needs.items()}
            self._hashed[key] = hashes
        return self._hashed[key]

    def _hash_definition(self, definition: Any) -> tuple[str, list[str]]:
        """Return a definition's own hash, and what it refers to. Tools share definitions, so each is read once."""
        if id(definition) not in self._seen:
            text = _hash(json.dumps(definition, sort_keys=True))
            self._seen[id(definition)] = (definition, (text, defs_of(definition)))
        return self._seen[id(definition)][1]

    def _component(self, name: str) -> str:
        key = (name, self._hashes[name])
        if key not in self._known:
            plain = re.sub(r"[^A-Za-z0-9._-]", "_", name) or "schema"
            component = self._known[key] = unique_name(plain, self._components)
            self._components[component] = {}
            self._waiting.append((name, component))
        return self._known[key]

    def _is_sure_default(self, schema: JsonObject, number: int) -> bool:
        """Return whether every validator accepts the default: they differ in formats, patterns and `$ref` in data."""
        key = (number, json.dumps(schema["default"]))
        if key not in self._sure:
            rest = with_defs({name: one for name, one in schema.items() if name != "default"}, self._defs)
            leaves = list(scalars_of(schema["default"], keys=True))
            has_text = any(isinstance(one, str) for one in leaves)
            unsure = "$ref" in leaves or (has_text and any(one.keys() & {"format", "pattern"} for one in walk(rest)))
            self._sure[key] = not unsure and not find_faults(rest, schema["default"])
        return self._sure[key]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _numbered_in(keywords: JsonObject) -> Iterator[tuple[str, Numbered]]:
    """Yield the schemas right inside, with the names of those that are properties."""
    for key, value in keywords.items():
        if isinstance(value, Numbered):
            yield "", value
        elif isinstance(value, dict | list):
            for name, one in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(one, Numbered):
                    yield str(name) if key == "properties" else "", one


def _written(value: Json, parts: list[_Part], shared: dict[int, str]) -> Json:
    if isinstance(value, Numbered):
        around = {key: one for key, one in value.items() if key != "#"}
        if value["#"] in shared:
            return {"$ref": COMPONENTS + shared[value["#"]], **around}
        return {**around, **_written(parts[value["#"]].keywords, parts, shared)}
    if isinstance(value, dict):
        return {key: _written(one, parts, shared) for key, one in value.items()}
    return [_written(one, parts, shared) for one in value] if isinstance(value, list) else value


def _without_refused(written: JsonObject) -> JsonObject:
    """Return the schema as validators of documents want it: refused keywords renamed, required properties listed."""
    required = written.get("required")
    if isinstance(required, list) and isinstance(written.get("properties", {}), dict):
        missing = dict.fromkeys((one for one in required if one not in written.get("properties", {})), ADDED)
        written |= {"properties": {**written.get("properties", {}), **missing}} if missing else {}
    if isinstance(written.get("pattern"), str) and not _is_python(written["pattern"]):
        written["x-gecko-pattern"] = written.pop("pattern")
    patterns = written.get("patternProperties")
    if isinstance(patterns, dict) and not all(map(_is_python, patterns)):
        written["patternProperties"] = {key: one for key, one in patterns.items() if _is_python(key)}
    return written


def _is_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
