"""Tools from an OpenAPI 3.0 or 3.1 document, or Swagger 2.0: every operation under `paths` is one tool.

- Name: the `operationId`; made valid where a provider would refuse it, unique_name where it is given twice, made from
  method and path where there is none (`get_pets_by_petId`).
- Description: summary and description.
- Arguments: see `arguments`. Schemas: see `schema_reader`. References: see `references`.
- Result: the schema of the lowest 2xx response that has one; `default` only where no 2xx is described; a lone 204 or
  205 is null.
- Effect: `x-effect` (`read`, `write` or `unknown`); else GET, HEAD, OPTIONS read and POST, PUT, PATCH, DELETE write.
- Contracts: `x-contract` of the operation, `x-contract-let`, `x-contract-requires` and `x-contract-invariants` at the
  root.
- Task state: its JSON Schema, `x-state` at the root.
- Examples: pairs of request and response examples of reads; see `examples`.
- `x-gecko` of an operation: what `Toolkit.to_openapi` could not write otherwise; it overrides the rest.

One broken part does not lose the rest: an operation with broken arguments is left out, a broken result is open, and
`problems` lists both. A document is refused where no operation can be read whole, or an `x-contract` or `x-gecko` is
broken. The document is kept with the operations that were read whole, as their tools' `source`.

Webhooks and callbacks are calls that the API makes, so they are left out. Servers and security: see `servers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from ...contracts.contract import Contract, Invariant
from ...contracts.language.location import Origin
from ...contracts.language.shapes import of_state
from ...errors import ToolkitError
from ...schemas.subschemas import follow, walk
from ...schemas.well_formed import check_schema
from ...state import JsonObject
from ..names import VALID, operation_name, unique_name, valid_name
from ..problems import Problem
from ..spec import Effect, HttpBinding, Source, ToolSpec, read_tags
from .arguments import ArgumentReader, Arguments, Body, pair_examples
from .keywords import METHODS, find_misspelt
from .own_keys import apply_own_keys
from .references import Documents, Place, error_at, expect_list, expect_object, list_items, member
from .schema_reader import SchemaReader, Version
from .servers import ServerReader
from .swagger import as_components, upgrade

EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("get", "head", "options"), "read"),
    **dict.fromkeys(("post", "put", "patch", "delete"), "write"),
}

_NO_CONTENT = frozenset({"204", "205"})


@dataclass(frozen=True, slots=True)
class OpenApiTools:
    """What an OpenAPI document holds."""

    title: str
    tools: tuple[ToolSpec, ...]
    operations: tuple[tuple[str, str], ...]
    """Path and method of each tool, in the same order."""
    lets: JsonObject
    invariants: tuple[Invariant, ...]
    state_schema: JsonObject | None
    problems: tuple[Problem, ...]
    """What of the document is broken and left out."""


def read_openapi(
    source: str | Path | Mapping[str, Any], *, allow_remote: bool = False, parsed: JsonObject | None = None
) -> OpenApiTools:
    """Return all tools of an OpenAPI document: a YAML or JSON file, a dict, or an `https` address.

    References to the web are followed, and an address is read, where `allow_remote` is True; `parsed` is what the file
    holds, where it has been read already.

    Raises:
        ToolkitError: It is no such document, or no operation is whole; the message names the place.
    """
    documents = Documents(source, allow_remote=allow_remote, parsed=parsed)
    place = documents.root
    root, broken = expect_object(documents.at(place), place), list[tuple[ToolkitError, str]]()
    if is_swagger := str(root.get("swagger")) in ("2.0", "2"):
        root, broken = upgrade(root, documents)
        documents.replace_root(root)
    reader = _DocumentReader(documents, root, _version(root, place), is_swagger=is_swagger)
    for error, name in broken:
        reader.leave_out(error, name)
    return reader.read()


def _version(root: JsonObject, place: Place) -> Version:
    if "swagger" in root:
        raise error_at(place / "swagger", f"this is Swagger {str(root['swagger'])[:10]}: 2.0, 3.0 and 3.1 are read")
    if "openapi" not in root:
        raise error_at(place, "not an OpenAPI document: it has no key 'openapi'" + _looks_like(root))
    version = str(root["openapi"])
    if not re.match(r"3\.[01](\.|$)", version):
        raise error_at(place / "openapi", f"unsupported version {version[:20]!r}; expected 3.0 or 3.1")
    return "3.0" if version.startswith("3.0") else "3.1"


def _looks_like(root: JsonObject) -> str:
    if "asyncapi" in root:
        return " (it is an AsyncAPI document)"
    return "; it may be a part that other documents refer to" if root else ""


class _DocumentReader:
    def __init__(self, documents: Documents, root: JsonObject, version: Version, *, is_swagger: bool) -> None:
        self._documents = documents
        self._root = root
        self._is_swagger = is_swagger
        self._place = documents.root
        self._version = version
        self._notes: list[tuple[tuple[str, str], Problem]] = []
        self._broken: ToolkitError | None = None
        """The error to raise where no operation can be read whole."""
        self._whole = JsonObject()
        """Path items with the operations that are read whole."""
        self._source = JsonObject()
        """The document to keep, filled in at the end."""
        self._schemas = SchemaReader(documents, version=version)
        self._servers = ServerReader(documents, root)
        for error, name in self._servers.broken:
            self.leave_out(error, name)
        self._arguments = ArgumentReader(documents, self._schemas, keys=self._servers.keys)
        self._lets = expect_object(member(root, "x-contract-let", {}), self._place / "x-contract-let")
        self._schema = self._state_schema()
        self._state = of_state(self._schema)
        self._requires = expect_object(member(root, "x-contract-requires", {}), self._place / "x-contract-requires")

    def read(self) -> OpenApiTools:
        """Return every operation of every path."""
        tools, operations, given = list[ToolSpec](), list[tuple[str, str]](), list[JsonObject]()
        self._note(self._place.document, *find_misspelt(self._root, self._place, "document"))
        for path, (item, place) in self._paths().items():
            for method in (one for one in item if one in METHODS):
                read = self._operation(item, place, method, path)
                if read is not None:
                    given.append(read[0])
                    tools.append(read[1])
                    operations.append((path, method))
        if self._broken is not None and not self._whole:
            raise self._broken
        self._keep()
        named = [replace(tool, name=name) for tool, name in zip(tools, _assign_names(given, operations), strict=True)]
        own = expect_object(member(self._root, "x-gecko", {}), self._place / "x-gecko")
        order = [*map(str, expect_list(member(own, "order", []), self._place / "x-gecko" / "order"))]
        ranked = sorted(zip(named, operations, strict=True), key=lambda one: _rank(one[0].name, order))
        return OpenApiTools(
            title=self._title(),
            tools=tuple(tool for tool, _ in ranked),
            operations=tuple(operation for _, operation in ranked),
            lets=self._lets,
            invariants=self._invariants(),
            state_schema=self._schema,
            problems=self._problems({operation: tool.name for tool, operation in ranked}),
        )

    def _operation(self, item: JsonObject, place: Place, method: str, path: str) -> tuple[JsonObject, ToolSpec] | None:
        """Return an operation and its tool; None where it is broken. A broken contract or `x-gecko` key raises."""
        given = item[method]
        name = str((isinstance(given, dict) and given.get("operationId")) or operation_name(method, path))
        try:
            # OpenAPI has no references here, but documents in several files are written so
            value, there = self._documents.follow(given, place / method)
            operation = expect_object(value, there)
            self._note(name, *find_misspelt(operation, there, "operation"), operation=(path, method))
            arguments = self._arguments.read(operation, there, item=item, item_place=place, path=path)
        except ToolkitError as error:
            self.leave_out(error, name)
            return None
        response = None
        try:
            response = self._response(operation, there)
            others = {key: one for key, one in item.items() if key not in METHODS}
            kept = self._whole.setdefault(path, self._documents.rooted(others, place))
            kept[method] = self._documents.rooted(operation, there)
        except ToolkitError as error:
            self._broken = self._broken or error
            self._note(name, f"any JSON passes as its result, which is broken: {error}", operation=(path, method))
        self._note(name, *self._schemas.notes, operation=(path, method))
        self._schemas.notes.clear()
        return operation, self._tool(operation, there, item, (method, path), arguments, response)

    def _keep(self) -> None:
        """Fill in the document to keep: whole in itself, with addresses that lead from anywhere."""
        whole = self._documents.bundle(self._whole)
        if self._place.document.startswith(("https://", "http://")):
            whole["servers"] = [self._servers.server()]
        self._source.update(as_components(whole) if self._is_swagger else whole)

    def leave_out(self, error: ToolkitError, name: str) -> None:
        """Note a part that cannot be read."""
        self._broken = self._broken or error
        self._schemas.notes.clear()
        self._note(name, f"left out: {error}")

    def _note(self, name: str, *messages: str, operation: tuple[str, str] = ("", "")) -> None:
        self._notes += [(operation, Problem(name, "broken", message)) for message in messages]

    def _problems(self, names: dict[tuple[str, str], str]) -> tuple[Problem, ...]:
        """Return what was noted, under the tools' names where there are such."""
        return tuple(replace(one, tool=names.get(operation, one.tool)) for operation, one in self._notes)

    def _title(self) -> str:
        return str(expect_object(member(self._root, "info", {}), self._place / "info").get("title") or "")

    def _paths(self) -> dict[str, tuple[JsonObject, Place]]:
        here = self._place / "paths"
        if self._root.get("paths") is None:
            if self._version == "3.0" or not self._root.keys() & {"webhooks", "components"}:
                raise error_at(here, "is missing: an OpenAPI document lists its operations there")
            return {}
        paths: dict[str, tuple[JsonObject, Place]] = {}
        for path, item in expect_object(self._root["paths"], here).items():
            if path.startswith("x-"):
                continue
            absolute = path if path.startswith("/") else f"/{path}"
            try:
                if absolute in paths:
                    raise error_at(here / path, f"{absolute} is given twice")
                paths[absolute] = self._item(item, here / path)
                self._note(path, *find_misspelt(*paths[absolute], "path"))
            except ToolkitError as error:
                self.leave_out(error, path)
        return paths

    def _item(self, item: Any, place: Place) -> tuple[JsonObject, Place]:
        value, there = self._documents.follow(item if item is not None else {}, place)
        referred = expect_object(value, there)
        if there == place or not item.keys() - {"$ref"}:
            return referred, there
        overlap = sorted((item.keys() & referred.keys()) - {"summary", "description", "$ref"})
        if overlap:
            raise error_at(place / overlap[0], "stands both here and in what $ref names; keep one")
        if item.keys() & {*METHODS, "parameters"}:
            raise error_at(
                place / "$ref", "a path with operations beside its $ref is not read; move them into one of both"
            )
        return {**referred, **{key: one for key, one in item.items() if key != "$ref"}}, there

    def _invariants(self) -> tuple[Invariant, ...]:
        here = self._place / "x-contract-invariants"
        return tuple(
            Invariant.load(
                expect_object(one, there),
                lets=self._lets,
                where=str(there),
                origin=Origin(there.document, there.tokens),
                state=self._state,
            )
            for one, there in list_items(member(self._root, "x-contract-invariants", []), here)
        )

    def _state_schema(self) -> JsonObject | None:
        """Return `x-state`, self-contained: what it refers to in the document becomes its own."""
        given, here = member(self._root, "x-state", None), self._place / "x-state"
        if given is None:
            return None
        refs = [str(part["$ref"]) for part in walk(expect_object(given, here)) if "$ref" in part]
        if any(ref.startswith("#/") and follow(given, ref) is None for ref in refs):
            reader = SchemaReader(self._documents, version="json")
            return check_schema(reader.restore_names(reader.read(given, here, direction="request")), where=str(here))
        return check_schema(given, where=str(here), line_of=Origin(here.document, here.tokens).find_line)

    def _tool(
        self,
        operation: JsonObject,
        place: Place,
        item: JsonObject,
        binding: tuple[str, str],
        arguments: Arguments,
        response: Body | None,
    ) -> ToolSpec:
        method, path = binding
        effect = self._effect(operation, place, method)
        tool = ToolSpec(
            name=operation_name(method, path),
            description=self._description(operation, item),
            parameters=arguments.parameters,
            result=self._schemas.restore_names(response.schema) if response and response.schema is not None else None,
            effect=effect,
            tags=read_tags(operation.get("tags")),
            examples=pair_examples(arguments.named, response) if effect == "read" and response else (),
            binding=HttpBinding(
                method,
                path,
                arguments.places,
                arguments.styles,
                arguments.body,
                self._servers.server(operation, item),
                self._servers.security(operation),
            ),
            stated=effect is not None and ("x-effect" in operation or effect == "read" or "x-contract" in operation),
            idempotency=f"header:{arguments.key_header}" if arguments.key_header else None,
            source=Source(self._source, (path, method)) if method in self._whole.get(path, {}) else None,
        )
        tool = apply_own_keys(tool, operation, place)
        name = str(operation.get("operationId") or tool.name)
        return replace(tool, contract=self._contract(operation, place, tool.parameters, name))

    @staticmethod
    def _description(operation: JsonObject, item: JsonObject) -> str:
        for holder in (operation, item):
            summary, description = (str(holder.get(key) or "").strip() for key in ("summary", "description"))
            if description.startswith(summary.rstrip(".")):
                summary = ""
            if summary or description:
                return "\n\n".join(part for part in (summary, description) if part)
        return ""

    @staticmethod
    def _effect(operation: JsonObject, place: Place, method: str) -> Effect | None:
        effect_key = operation.get("x-effect")
        if effect_key is None:
            return EFFECTS.get(method)
        if effect_key not in (*get_args(Effect), "unknown"):
            raise error_at(place / "x-effect", f"must be read, write or unknown, not {effect_key!r}")
        effect: Effect | None = None if effect_key == "unknown" else effect_key
        return effect

    def _contract(self, operation: JsonObject, place: Place, parameters: JsonObject, name: str) -> Contract | None:
        if operation.get("x-contract") is None:
            return None
        here, lets = place / "x-contract", operation.get("x-gecko", {}).get("lets", self._lets)
        where = f"{here} (tool {name})"
        data = expect_object(operation["x-contract"], here)
        origin = Origin(here.document, here.tokens)
        contract = Contract.load(data, lets=lets, requires=self._requires, where=where, origin=origin)
        return contract.fit(parameters, state=self._state)

    def _response(self, operation: JsonObject, place: Place) -> Body | None:
        """Return schema and examples of a success; None where the document has none."""
        here = place / "responses"
        responses = expect_object(member(operation, "responses", {}), here)
        codes = sorted((one for one in responses if re.fullmatch(r"2(\d\d|XX|xx)", one)), key=str.upper)
        found: list[Body] = []
        for code in codes or [one for one in responses if one == "default"]:
            value, where = self._documents.follow(responses[code], here / code)
            if value is not None:
                media = self._arguments.media(expect_object(value, where), where, direction="response")
                found += [media] if media else []
        with_schema = [one for one in found if one.schema is not None]
        if not with_schema and codes and set(codes) <= _NO_CONTENT:
            return Body({"type": "null"}, {}, here)
        return next(iter([*with_schema, *found]), None)


def _assign_names(given: list[JsonObject], operations: list[tuple[str, str]]) -> list[str]:
    """Return one name for each operation: those that were kept, then valid operationIds, then the others."""
    kept = ((index, one.get("x-gecko", {}).get("name")) for index, one in enumerate(given))
    names = {index: name for index, name in kept if name}
    taken = {*names.values()}
    ids = [name if isinstance(name := one.get("operationId"), str) else "" for one in given]
    for index, name in enumerate(ids):
        if index not in names and VALID.fullmatch(name) and name not in taken:
            names[index] = name
            taken.add(name)
    for index, (name, (path, method)) in enumerate(zip(ids, operations, strict=True)):
        if index not in names:
            names[index] = unique_name(valid_name(name) if name.strip() else operation_name(method, path), taken)
            taken.add(names[index])
    return [names[index] for index in range(len(given))]


def _rank(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)
