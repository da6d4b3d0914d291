"""A toolkit as an OpenAPI 3.1 document that reads back as the same tools.

Every tool is first written as plain OpenAPI: with a binding at its path, else as `POST /tools/<name>`. The document
is then read as any other, and where a tool that comes back differs, its operation gets keys of our own:

| key | holds |
| --- | --- |
| `x-gecko-name`, `x-gecko-description` | the tool's own |
| `x-gecko-parameters`, `x-gecko-result` | the schema as it is; null where there is no result schema |
| `x-gecko-examples` | `[{args, result}]` |
| `x-gecko-binding` | the fields of an `HttpBinding`; null for a tool without an endpoint |
| `x-gecko-idempotency` | the argument that takes an idempotency key |
| `x-gecko-contract-let` | the contract's lets, where they are not the document's |
| `x-gecko-title` (in `info`), `x-gecko-order` (at the root) | the toolkit's title and the order of its tools |

Inside schemas `x-gecko-default` and `x-gecko-pattern` stand for what validators of OpenAPI documents refuse (a default
that its own schema does not allow, a pattern that Python cannot read), `x-gecko-name` for a definition's own name,
`x-gecko-inline` marks a component that is written out where it is referred to: see `schema_writer`.
"""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from ...contracts.contract import Invariant
from ...errors import ToolkitError
from ...state import Json, JsonObject
from ..names import path_variables, provider_names
from ..spec import HttpBinding, ToolSpec
from .arguments import PLACES
from .importer import EFFECTS, read_openapi
from .keywords import METHODS
from .references import Place, to_json
from .request import JSON_MEDIA, STYLES
from .schema_writer import SchemaWriter

_WHERE = Place("the toolkit")


def write_openapi(
    tools: Sequence[ToolSpec],
    *,
    title: str = "",
    lets: JsonObject | None = None,
    invariants: Sequence[Invariant] = (),
    state_schema: JsonObject | None = None,
) -> JsonObject:
    """Return an OpenAPI 3.1 document with an operation for each tool.

    Raises:
        ToolkitError: A tool's schema is not JSON Schema; the message names the tool or the place in the document.
    """
    writer = _Writer(tools, title, lets or {}, invariants)
    slots = {tool.name: writer.add(tool) for tool in tools}
    document: JsonObject = to_json(writer.document(), _WHERE)
    if state_schema is not None:
        document["x-state"] = to_json(state_schema, _WHERE)
    read = read_openapi(document)
    back = dict(zip(read.operations, read.tools, strict=True))
    for tool in tools:
        path, method = slots[tool.name]
        if (path, method) not in back:
            noted = [one.message for one in read.problems if one.tool == tool.name]
            why = noted[0] if noted else "its parameters are not a JSON Schema of an object"
            raise ToolkitError(f"{tool.name}: cannot be written as OpenAPI: {why}")
        operation = document["paths"][path][method]
        operation.update(to_json({**_gecko_keys(tool, back[path, method]), **writer.contract(tool)}, _WHERE))
    if list(slots.values()) != list(read.operations):
        document["x-gecko-order"] = list(slots)
    return document


def _gecko_keys(tool: ToolSpec, back: ToolSpec) -> JsonObject:
    """Return the `x-gecko-` keys that the operation needs for the tool to read back as it is."""
    described, found = _as_data(tool), _as_data(back)
    return {f"x-gecko-{key}": value for key, value in described.items() if not _is_same_json(value, found[key])}


def _as_data(tool: ToolSpec) -> JsonObject:
    binding = tool.binding
    return {
        "description": tool.description,
        "parameters": tool.parameters,
        "result": tool.result,
        "examples": [{"args": one.args, "result": one.result} for one in tool.examples],
        "binding": binding and {key: one for key, one in asdict(binding).items() if one or key in ("path", "places")},
        "idempotency": tool.idempotency,
    }


def _is_same_json(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


class _Writer:
    """Writes tools as plain OpenAPI."""

    def __init__(
        self, tools: Sequence[ToolSpec], title: str, lets: JsonObject, invariants: Sequence[Invariant]
    ) -> None:
        self._title, self._invariants = title, invariants
        self._schemas = SchemaWriter()
        self._names = provider_names([tool.name for tool in tools])
        self._paths: JsonObject = {}
        self._claimed = {tool.binding.path for tool in tools if tool.binding is not None}
        contracts = [tool.contract for tool in tools if tool.contract is not None]
        agreed = contracts and all(_is_same_json(one.lets, contracts[0].lets) for one in contracts)
        self._lets: JsonObject = lets or (contracts[0].lets if agreed else {})
        servers = [tool.binding.server if tool.binding else None for tool in tools] or [None]
        self._server = servers[0] if all(_is_same_json(one, servers[0]) for one in servers) else None
        self._schemes: JsonObject = {}

    def document(self) -> JsonObject:
        """Return the document with what was added so far."""
        title = self._title
        info = {"title": title or "Tools", "version": "1", **({} if title else {"x-gecko-title": title})}
        document: JsonObject = {"openapi": "3.1.0", "info": info, "paths": self._paths}
        document, schemas = self._schemas.write(document)
        components = {"schemas": schemas, "securitySchemes": self._schemes}
        if any(components.values()):
            document["components"] = {key: one for key, one in components.items() if one}
        if self._server:
            document["servers"] = [self._server]
        if self._lets:
            document["x-contract-let"] = self._lets
        if self._invariants:
            document["x-contract-invariants"] = [one.data for one in self._invariants]
        return document

    def add(self, tool: ToolSpec) -> tuple[str, str]:
        """Add a tool's operation; return its path and method."""
        slot = self._slot(tool)
        self._paths.setdefault(slot.path, {})[slot.method] = self._operation(tool, slot)
        return slot.path, slot.method

    def _slot(self, tool: ToolSpec) -> HttpBinding:
        """Return where the operation is written: at the tool's own path, or at a free one."""
        binding = tool.binding
        if binding is not None and _is_writable(binding) and binding.method not in self._paths.get(binding.path, {}):
            return binding
        path = f"/tools/{quote(tool.name, safe='')}"
        while path in self._claimed:
            path += "_"
        self._claimed.add(path)
        return HttpBinding("post", path)

    def _operation(self, tool: ToolSpec, slot: HttpBinding) -> JsonObject:
        operation: JsonObject = {"operationId": self._names[tool.name]}
        if self._names[tool.name] != tool.name:
            operation["x-gecko-name"] = tool.name
        if tool.description:
            operation["description"] = tool.description
        if tool.tags:
            operation["tags"] = list(tool.tags)
        if tool.effect != EFFECTS.get(slot.method):
            operation["x-effect"] = tool.effect or "unknown"
        operation.update(self._arguments(tool, slot) if slot is tool.binding else self._single_body(tool))
        operation["responses"] = {"200": self._response(tool)}
        return operation

    def contract(self, tool: ToolSpec) -> JsonObject:
        """Return the tool's contract; added last, because it must find the tool's own arguments when it is read."""
        if tool.contract is None:
            return {}
        own = {} if _is_same_json(tool.contract.lets, self._lets) else {"x-gecko-contract-let": tool.contract.lets}
        return {"x-contract": tool.contract.data, **own}

    def _single_body(self, tool: ToolSpec) -> JsonObject:
        """Return all arguments as one request body."""
        parameters = tool.parameters
        if not parameters.get("properties") and parameters.get("additionalProperties") is False:
            return {}
        media = {
            "schema": self._schemas.number(parameters, name=f"{tool.name}_arguments"),
            **_example_map([one.args for one in _examples_of(tool)]),
        }
        return {"requestBody": {"required": bool(parameters.get("required")), "content": {JSON_MEDIA: media}}}

    def _arguments(self, tool: ToolSpec, slot: HttpBinding) -> JsonObject:
        """Return parameters and body, each argument in its place."""
        places = {name: slot.places.get(name, ("body", name)) for name in tool.parameters.get("properties", {})}
        variables = path_variables(slot.path)
        listed = [self._parameter(tool, name, *places[name]) for name in places if places[name][0] in PLACES]
        for one in listed:
            if one["in"] == "path" and one["name"] not in variables:
                one["in"] = "query"
            if one.get("style") not in STYLES[one["in"]]:
                one.pop("style", None)
        declared = {one["name"] for one in listed if one["in"] == "path"}
        undeclared = {"in": "path", "required": True, "schema": {"type": "string"}}
        listed += [{"name": name, **undeclared} for name in variables if name not in declared]
        if (tool.idempotency or "").startswith("header:"):
            listed.append({"name": str(tool.idempotency)[7:], "in": "header", "schema": {"type": "string"}})
        unlike = {(one["in"], one["name"]): one for one in listed}
        operation: JsonObject = {"parameters": list(unlike.values())} if unlike else {}
        operation |= self._server_and_security(slot)
        wires = {name: one[1] for name, one in places.items() if one[0] == "body"}
        return {**operation, **self._body(tool, wires, slot.body)}

    def _server_and_security(self, slot: HttpBinding) -> JsonObject:
        operation: JsonObject = {"servers": [slot.server]} if slot.server and not self._server else {}
        for schemes in slot.security:
            self._schemes = {**schemes, **self._schemes}
        if slot.security:
            operation["security"] = [{name: [] for name in schemes} for schemes in slot.security]
        return operation

    def _parameter(self, tool: ToolSpec, name: str, place: str, wire: str) -> JsonObject:
        schema = self._schemas.number(tool.parameters["properties"][name], within=tool.parameters, name=name)
        about: JsonObject = {}
        if isinstance(schema, dict) and isinstance(schema.get("description"), str):
            about["description"] = schema.pop("description")
        needed = place == "path" or name in tool.parameters.get("required", ())
        numbered = enumerate(_examples_of(tool), 1)
        examples = {str(number): {"value": one.args[name]} for number, one in numbered if name in one.args}
        shown = {"examples": examples} if examples else {}
        style = dict(tool.binding.styles.get(name, {})) if tool.binding else {}
        media = style.pop("content", None)
        shown = {"content": {media: {"schema": schema, **shown}}} if media else {**style, "schema": schema, **shown}
        return {"name": wire or name or "argument", "in": place, "required": needed, **about, **shown}

    def _body(self, tool: ToolSpec, wires: dict[str, str], form: JsonObject) -> JsonObject:
        if not wires:
            return {}
        parameters = tool.parameters
        required = [name for name in wires if name in parameters.get("required", ())]
        if list(wires.values()) == [""]:
            (name,) = wires
            schema = self._schemas.number(parameters["properties"][name], within=parameters, name=name)
            examples = [one.args[name] for one in _examples_of(tool) if name in one.args]
        else:
            written = {wire: parameters["properties"][name] for name, wire in wires.items()}
            body: JsonObject = {"type": "object", "properties": written}
            if required or parameters.get("required") == []:
                body["required"] = [wires[name] for name in required]
            if parameters.get("additionalProperties", False) is not False:
                body["additionalProperties"] = parameters["additionalProperties"]
            schema = self._schemas.number(body, within=parameters, name=f"{tool.name}_body")
            shown = [one.args for one in _examples_of(tool)]
            examples = [{wires[key]: value for key, value in args.items() if key in wires} for args in shown]
        encoding = {"encoding": form["encoding"]} if "encoding" in form else {}
        media = {"schema": schema, **encoding, **_example_map(examples)}
        needed = {"required": True} if required or form.get("required") else {}
        return {"requestBody": {**needed, "content": {form.get("media", JSON_MEDIA): media}}}

    def _response(self, tool: ToolSpec) -> JsonObject:
        media: JsonObject = (
            {} if tool.result is None else {"schema": self._schemas.number(tool.result, name=f"{tool.name}_result")}
        )
        media.update(_example_map([one.result for one in _examples_of(tool)]))
        return {"description": "What the tool answers.", **({"content": {JSON_MEDIA: media}} if media else {})}


def _examples_of(tool: ToolSpec) -> Any:
    """Return the examples that plain OpenAPI can show: those of reads."""
    return tool.examples if tool.reads else ()


def _example_map(values: list[Json]) -> JsonObject:
    if not values:
        return {}
    return {"examples": {str(number): {"value": value} for number, value in enumerate(values, 1)}}


def _is_writable(binding: HttpBinding) -> bool:
    """Return whether a document may hold an operation there: validators take path templates to be Python's."""
    if binding.method not in METHODS or not binding.path.startswith("/"):
        return False
    try:
        fields = [name for _, name, *how in string.Formatter().parse(binding.path) if name or any(how)]
    except ValueError:
        return False
    return list(dict.fromkeys(fields)) == path_variables(binding.path)
