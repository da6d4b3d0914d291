"""JSON Schemas as an OpenAPI 3.1 document holds them: definitions that tools share stand in `components/schemas`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from ...schemas.complaints import find_faults
from ...schemas.subschemas import mentions, rebuild
from ...state import JsonObject
from .references import pointer_to
from .simplify import PREFIX, defs_of

_NOT_WRITTEN = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "$defs", "definitions")
_COMPONENT = re.compile(r"[A-Za-z0-9._-]+")


class SchemaWriter:
    """Writes tools' schemas; `components` are the definitions on which all of them agree. `taken` are other names."""

    def __init__(self, schemas: Iterable[JsonObject], taken: Collection[str]) -> None:
        found: dict[str, dict[str, Any]] = {}
        for schema in schemas:
            for name, one in _defs(schema).items():
                found.setdefault(name, {})[json.dumps(one)] = one
        usable = (name for name in found if _COMPONENT.fullmatch(name) and name not in taken)
        agreed = {name: one for name in usable for one in found[name].values() if len(found[name]) == 1}
        while torn := {name for name, one in agreed.items() if {*defs_of(one)} & found.keys() - agreed.keys()}:
            agreed = {name: one for name, one in agreed.items() if name not in torn}
        self._places = {name: pointer_to(("components", "schemas", name)) for name in agreed}
        self.components = {name: _write(one, self._places) for name, one in agreed.items()}

    def write(self, schema: JsonObject, *tokens: str) -> JsonObject:
        """Return a schema as it is written at a place of the document; it keeps the definitions that are its own."""
        own = {name: one for name, one in _defs(schema).items() if name not in self._places}
        places = self._places | {name: pointer_to((*tokens, "$defs", name)) for name in own}
        kept = {name: _write(one, places) for name, one in own.items()}
        written: JsonObject = _write(schema, places)
        return {**written, "$defs": kept} if kept else written


def _defs(schema: JsonObject) -> JsonObject:
    defs = schema.get("$defs")
    return defs if isinstance(defs, dict) else {}


def _write(schema: Any, places: dict[str, str]) -> Any:
    """Return a schema without what validators of documents refuse, or take in different ways."""
    if not isinstance(schema, dict):
        return schema
    plain = {key: one for key, one in schema.items() if key not in _NOT_WRITTEN}
    target = places.get(str(plain.pop("$ref", "")).removeprefix(PREFIX))
    if "default" in plain and not _is_sure_default(schema):
        del plain["default"]
    if not _is_python(plain.get("pattern")):
        del plain["pattern"]
    written = rebuild(plain, lambda one: _write(one, places)) | ({"$ref": target} if target else {})
    patterns, properties = written.get("patternProperties"), written.get("properties", {})
    if isinstance(patterns, dict):
        written["patternProperties"] = {key: one for key, one in patterns.items() if _is_python(key)}
    if isinstance(properties, dict) and isinstance(required := written.get("required"), list):
        every = {**dict.fromkeys(required, True), **properties}
        written |= {"properties": every} if len(every) > len(properties) else {}
    return written


def _is_sure_default(schema: JsonObject) -> bool:
    """Return whether every validator accepts the default: they differ in formats, patterns and references."""
    rest = {key: one for key, one in schema.items() if key != "default"}
    unsure = any(mentions(schema, key) for key in ("$ref", "format", "pattern"))
    return not unsure and not find_faults(rest, schema["default"])


def _is_python(pattern: Any) -> bool:
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True
