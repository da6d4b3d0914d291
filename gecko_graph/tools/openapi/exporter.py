"""Export a toolkit as an OpenAPI document that reads back as the same tools.

The tools' source document is written unchanged, reduced to their operations; tools without a source are added as `POST
/tools/<name>`. The result is read like any other document. If a tool differs then, its description, effect and result
are written to the operation, and the rest to one extension key, `x-gecko`, an object with some of:

| key | content |
| --- | --- |
| `name`, `description`, `idempotency` | the tool's own |
| `parameters`, `result` | the exact schema; null if there is no result schema |
| `examples` | `[{args, result}]` |
| `binding` | the fields of an `HttpBinding`; null for a tool without an endpoint |
| `lets` | those of the contract, if they are not the document's |
| `derived` | the contract that was derived from a document |

At the root `x-gecko` contains the other `documents` that this one refers to, and the web `address` of references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

from ...errors import ToolkitError
from ...schemas.complaints import find_faults
from ...schemas.subschemas import mentions, rebuild
from ...state import Json, JsonObject
from ..declaration import ToolkitParts
from ..spec import ToolSpec, provider_names, unique_name
from .documents import METHODS, to_json
from .importer import read_openapi
from .request import JSON_MEDIA
from .simplify import PREFIX

_WHERE = "the toolkit"
_NEW: JsonObject = {"openapi": "3.1.0", "info": {}, "paths": {}}
_WRITTEN = ("x-contract-let", "x-contract-requires", "x-contract-invariants", "x-state", "x-contract", "x-gecko")
"""Keys of a document that are replaced, since they are written from the toolkit."""
_NOT_WRITTEN = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "$defs", "definitions")
_COMPONENT = re.compile(r'"(?:#/components/(\w+)/)?([A-Za-z0-9._-]+)[/"]')
_NOT_COMPONENT = re.compile(r"[^A-Za-z0-9._-]+")


def write_openapi(parts: ToolkitParts) -> JsonObject:
    """Return an OpenAPI document with an operation for each tool.

    Raises:
        ToolkitError: A tool's schema is not JSON Schema; the message names the tool or the place in the document.
    """
    tools, lets, invariants, state_schema, title, _ = parts
    writer = _DocumentWriter(tools, title)
    back = writer.read_back()
    if any([writer.describe(tool, back[tool.name]) for tool in tools]):
        back = writer.read_back()
    contracts = [tool.contract for tool in tools if tool.contract is not None]
    agreed = contracts and all(_is_same_json(one.lets, contracts[0].lets) for one in contracts)
    shared: JsonObject = dict(lets) or (contracts[0].lets if agreed else {})
    for tool in tools:
        writer.add_own_keys(tool, back[tool.name], shared)
    rules = {"x-contract-let": shared, "x-contract-invariants": [one.data for one in invariants]}
    writer.document |= to_json({key: one for key, one in rules.items() if one}, _WHERE)
    if state_schema is not None:
        writer.document["x-state"] = to_json(state_schema, _WHERE)
    return writer.document


class _DocumentWriter:
    """Writes tools as plain OpenAPI: those of one source document into it, the others as new operations."""

    def __init__(self, tools: Sequence[ToolSpec], title: str) -> None:
        self._tools = tools
        source = next((tool.source.document for tool in tools if tool.source), _NEW)
        self._slots: dict[str, tuple[str, str]] = {}
        for tool in tools:
            if tool.source and tool.source.document is source and tool.source.slot not in self._slots.values():
                self._slots[tool.name] = tool.source.slot
        self.document: JsonObject = to_json(_prune(source, self._slots.values()), _WHERE)
        self.document["info"] = {"version": "1", **(self.document.get("info") or {}), "title": title}
        others = [tool for tool in tools if tool.name not in self._slots]
        components = self.document.get("components") or {}
        self._schemas = SchemaWriter(components.get("schemas") or {})
        for tool in others:
            self._add(tool)
        for name, written in provider_names([tool.name for tool in tools]).items():
            self._operation(name)["operationId"] = written
            if name != written:
                self._operation(name)["x-gecko"] = {"name": name}

    def _operation(self, name: str) -> JsonObject:
        path, method = self._slots[name]
        operation: JsonObject = self.document["paths"][path][method]
        return operation

    def _add(self, tool: ToolSpec) -> None:
        """Add a tool without a source document; its arguments form one request body."""
        path = f"/tools/{quote(tool.name, safe='')}"
        while path in self.document["paths"]:
            path += "_"
        self._slots[tool.name] = (path, "post")
        operation = {"responses": self._responses(tool)}
        parameters = tool.parameters
        if parameters.get("properties") or parameters.get("additionalProperties") is not False:
            content = self._content(tool, parameters, [one.args for one in tool.examples])
            operation["requestBody"] = {"required": bool(parameters.get("required")), **content}
        self.document["paths"][path] = {"post": operation}
        self.describe(tool, replace(tool, description="", tags=(), effect="write"))

    def _content(self, tool: ToolSpec, schema: JsonObject | None, examples: list[Json]) -> JsonObject:
        media: JsonObject = {} if schema is None else {"schema": self._schemas.write(schema)}
        if tool.reads and examples:
            media["examples"] = {str(number): {"value": value} for number, value in enumerate(examples, 1)}
        return {"content": {JSON_MEDIA: to_json(media, _WHERE)}} if media else {}

    def _responses(self, tool: ToolSpec) -> JsonObject:
        content = self._content(tool, tool.result, [one.result for one in tool.examples])
        return {"200": {"description": "What the tool answers.", **content}}

    def describe(self, tool: ToolSpec, back: ToolSpec) -> bool:
        """Update description, tags, effect and result where the tool read back differs; return whether any did."""
        operation, changed = self._operation(tool.name), JsonObject()
        if tool.description != back.description:
            operation.pop("summary", None)
            changed["description"] = tool.description
        if tool.tags != back.tags:
            changed["tags"] = list(tool.tags)
        if tool.effect != back.effect:
            changed["x-effect"] = tool.effect or "unknown"
        if not _is_same_json(tool.result, back.result):
            changed["responses"] = self._responses(tool)
        operation.update(changed)
        return bool(changed)

    def read_back(self) -> dict[str, ToolSpec]:
        """Return the tools read from the document, by name. Raises ToolkitError if one is missing."""
        components = self.document.get("components") or {}
        if shared := self._schemas.components:
            self.document["components"] = {**components, "schemas": {**(components.get("schemas") or {}), **shared}}
        read = read_openapi(self.document)
        back = {tool.source.slot: tool for tool in read.tools if tool.source}
        for tool in self._tools:
            if self._slots[tool.name] not in back:
                noted = [one.message for one in read.broken if one.tool == tool.name]
                why = noted[0] if noted else "its parameters are not a JSON Schema of an object"
                raise ToolkitError(f"{tool.name}: cannot be written as OpenAPI: {why}")
        return {tool.name: back[self._slots[tool.name]] for tool in self._tools}

    def add_own_keys(self, tool: ToolSpec, back: ToolSpec, lets: JsonObject) -> None:
        """Add the keys that make a tool read back the same; the contract last, since it is checked against them."""
        operation, found = self._operation(tool.name), _as_data(back)
        own = {key: one for key, one in _as_data(tool).items() if not _is_same_json(one, found[key])}
        if tool.contract is not None:
            operation["x-contract"] = to_json(tool.contract.data, _WHERE)
            own |= {} if _is_same_json(tool.contract.lets, lets) else {"lets": tool.contract.lets}
        if own:
            operation["x-gecko"] = {**operation.get("x-gecko", {}), **to_json(own, _WHERE)}


class SchemaWriter:
    """Writes schemas of tools; their `$defs` become components under names outside `taken`."""

    def __init__(self, taken: Collection[str]) -> None:
        self._names = {*taken}
        self._given: JsonObject = {}
        self.components: JsonObject = {}

    def write(self, schema: JsonObject) -> JsonObject:
        """Return the schema for the document; known definitions are shared if all of them are known."""
        defs = schema.get("$defs", {})
        names = {name: name for name in defs}
        if any(not self._is_free(name, one) for name, one in defs.items()):
            for name in defs:
                names[name] = unique_name(_NOT_COMPONENT.sub("_", name) or "schema", self._names | {*names.values()})
        for name, one in defs.items():
            self._names.add(names[name])
            self._given[names[name]] = one
            self.components[names[name]] = _write(one, names)
        written: JsonObject = _write(schema, names)
        return written

    def _is_free(self, name: str, definition: Any) -> bool:
        if name in self._given:
            return _is_same_json(self._given[name], definition)
        return name not in self._names and bool(name) and not _NOT_COMPONENT.search(name)


def _write(schema: Any, names: dict[str, str]) -> Any:
    """Return a schema without keywords that validators of documents reject or interpret differently."""
    if not isinstance(schema, dict):
        return schema
    plain = {key: one for key, one in schema.items() if key not in _NOT_WRITTEN}
    target = names.get(str(plain.pop("$ref", "")).removeprefix(PREFIX))
    if "default" in plain and not _is_sure_default(schema):
        del plain["default"]
    written = rebuild(plain, lambda one: _write(one, names))
    return written | ({"$ref": f"#/components/schemas/{target}"} if target else {})


def _is_sure_default(schema: JsonObject) -> bool:
    """Return whether every validator accepts the default; they differ in formats, patterns and references."""
    rest = {key: one for key, one in schema.items() if key != "default"}
    unsure = any(mentions(schema, key) for key in ("$ref", "format", "pattern"))
    return not unsure and not find_faults(rest, schema["default"])


def _prune(document: JsonObject, kept: Collection[tuple[str, str]]) -> JsonObject:
    """Return a document with only the `kept` operations, without the keys that are written from the toolkit."""
    left = {key: one for key, one in document.items() if key not in _WRITTEN} | {"paths": {}}
    bundled = {key: one for key, one in document.get("x-gecko", {}).items() if key in ("documents", "address")}
    left |= {"x-gecko": bundled} if bundled else {}
    for path, method in kept:
        item = document["paths"][path]
        others = {key: one for key, one in item.items() if key not in METHODS}
        operation = {key: one for key, one in item[method].items() if key not in _WRITTEN}
        left["paths"].setdefault(path, others)[method] = operation
    is_part = sum(map(len, left["paths"].values())) < sum(map(len, document["paths"].values()))
    return {**left, "components": _used_components(left)} if is_part and "components" in left else left


def _used_components(document: JsonObject) -> JsonObject:
    """Return the components that are reachable by references or by name, and all security schemes."""
    components = {kind: some for kind, some in document["components"].items() if isinstance(some, dict)}
    found = {("securitySchemes", name) for name in components.get("securitySchemes", ())}
    text = json.dumps({**document, "components": {}})
    while named := {(kind or "schemas", name) for kind, name in _COMPONENT.findall(text)} - found:
        found |= named
        text = json.dumps([components.get(kind, {}).get(name) for kind, name in named])
    used = {kind: {name: some[name] for name in some if (kind, name) in found} for kind, some in components.items()}
    return {kind: some for kind, some in used.items() if some}


def _as_data(tool: ToolSpec) -> JsonObject:
    binding = tool.binding and replace(tool.binding, responses={})
    return {
        "description": tool.description,
        "parameters": tool.parameters,
        "result": tool.result,
        "examples": [{"args": one.args, "result": one.result} for one in tool.examples],
        "binding": binding and {key: one for key, one in asdict(binding).items() if one or key in ("path", "places")},
        "idempotency": tool.idempotency,
        "derived": tool.derived and tool.derived.data,
    }


def _is_same_json(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
