"""JSON Schemas with `$defs` of their own as OpenAPI 3.1 has them: references into `components/schemas`."""

from __future__ import annotations

import json
import re
from typing import Any

from ..state import JsonObject
from .names import numbered
from .schema import faults
from .simplify import PREFIX, reachable, with_defs
from .subschemas import rebuild, walk

COMPONENTS = "#/components/schemas/"
_OWN_WORLD = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "$defs", "definitions")


class SchemaWriter:
    """Writes schemas, and collects the definitions that they share as components."""

    def __init__(self) -> None:
        self.components: JsonObject = {}
        self._known: dict[str, str] = {}

    def write(self, schema: Any, *, within: JsonObject | None = None) -> Any:
        """One schema as it stands in the document.

        Args:
            schema: The schema.
            within: The schema that holds its `$defs`; itself by default.
        """
        holder = within if within is not None else schema
        defs = holder.get("$defs", {}) if isinstance(holder, dict) else {}
        return self._written(schema, defs if isinstance(defs, dict) else {})

    def _written(self, schema: Any, defs: JsonObject) -> Any:
        if not isinstance(schema, dict):
            return schema
        plain = {key: one for key, one in schema.items() if key not in _OWN_WORLD}
        reference = plain.pop("$ref", None)
        written = rebuild(plain, lambda one: self._written(one, defs))
        if isinstance(reference, str) and reference.removeprefix(PREFIX) in defs and reference.startswith(PREFIX):
            written["$ref"] = COMPONENTS + self._component(reference.removeprefix(PREFIX), defs)
        _tell_required(written)
        return _without_refused(written, with_defs(schema, defs))

    def _component(self, name: str, defs: JsonObject) -> str:
        closure = {one: defs[one] for one in sorted({name, *reachable({"$ref": PREFIX + name}, defs)})}
        key = json.dumps([name, closure], sort_keys=True)
        if key not in self._known:
            plain = re.sub(r"[^A-Za-z0-9._-]", "_", name) or "schema"
            component = self._known[key] = numbered(plain, self.components)
            self.components[component] = {}
            written = self._written(defs[name], defs)
            named = isinstance(written, dict) and component != name
            self.components[component] = {"x-gecko-name": name, **written} if named else written
        return self._known[key]


def _tell_required(written: JsonObject) -> None:
    """Validators want every required property among the properties."""
    required = written.get("required")
    if isinstance(required, list) and isinstance(written.get("properties", {}), dict):
        missing = [name for name in required if name not in written.get("properties", {})]
        if missing:
            written["properties"] = {**written.get("properties", {}), **{name: {} for name in missing}}


def _without_refused(written: JsonObject, schema: JsonObject) -> JsonObject:
    """The schema with what validators of documents refuse under names that they pass over."""
    if "default" in written and not _is_sure_default(schema):
        written["x-gecko-default"] = written.pop("default")
    if isinstance(written.get("pattern"), str) and not _is_python(written["pattern"]):
        written["x-gecko-pattern"] = written.pop("pattern")
    patterns = written.get("patternProperties")
    if isinstance(patterns, dict) and not all(map(_is_python, patterns)):
        written["patternProperties"] = {key: one for key, one in patterns.items() if _is_python(key)}
    return written


def _is_sure_default(schema: JsonObject) -> bool:
    """Whether any validator finds that the default fits: they do not agree on formats, patterns and `$ref` in data."""
    leaves = _scalars(schema["default"])
    if "$ref" in leaves:
        return False
    if any(isinstance(one, str) for one in leaves) and any(one.keys() & {"format", "pattern"} for one in walk(schema)):
        return False
    return not faults({key: one for key, one in schema.items() if key != "default"}, schema["default"])


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in (key, *_scalars(one))]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _scalars(one)]
    return [value]


def _is_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
