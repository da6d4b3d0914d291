"""Read OpenAPI 3.0 to 3.2 and Swagger 2.0 documents; each operation under `paths` becomes a tool.

- Name: the `operationId`, changed if a provider would reject it or it is a duplicate; if missing, made from method
  and path (`get_pets_by_petId`).
- Result: the schema of the lowest 2xx response that has one; `default` only if no 2xx is described; null if there
  are only 204 and 205.
- Effect: `x-effect` (`read`, `write` or `unknown`); else GET, HEAD, OPTIONS, QUERY read and POST, PUT, PATCH, DELETE
  write.
- Contracts: `x-contract` of the operation; at the root `x-contract-let`, `x-contract-requires`, `x-contract-invariants`
  and `x-state`, the JSON Schema of the task state.
- `x-gecko` of an operation: additions by `Toolkit.to_openapi`; they override the rest.

A broken part does not invalidate the rest: unreadable parts of arguments and results accept any value, broken
operations are left out, and `problems` lists both. The document is rejected if no operation can be read, if each one
needs another document that cannot be read, or if an `x-contract` or `x-gecko` is invalid. The document with the
operations read is kept as the tools' `source`.

Webhooks and callbacks are left out, since the API makes these calls itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ...contracts.contract import Contract
from ...contracts.invariant import Invariant
from ...contracts.language.examine import of_state
from ...contracts.language.expression import Origin
from ...errors import ToolkitError, did_you_mean
from ...schemas.strict import check_schema
from ...schemas.subschemas import follow, walk
from ...state import JsonObject
from ..declaration import ToolkitParts
from ..problems import Problem
from ..spec import (
    VALID,
    Effect,
    HttpBinding,
    Source,
    ToolSpec,
    operation_name,
    read_tags,
    unique_name,
    valid_name,
)
from .arguments import ArgumentReader, Media, pair_examples
from .credentials import ServerReader
from .documents import METHODS, Documents, OutsideError, Place, error_at, expect_object, list_items, member, name_format
from .own_keys import apply_own_keys
from .schema_reader import SchemaReader, Version
from .swagger import upgrade

_EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("get", "head", "options", "query"), "read"),
    **dict.fromkeys(("post", "put", "patch", "delete"), "write"),
}
_NO_CONTENT = frozenset({"204", "205"})
_KEYS = {
    "document": "openapi $self info servers paths webhooks components security tags externalDocs jsonSchemaDialect "
    "x-contract-let x-contract-requires x-contract-invariants x-state x-gecko",
    "path": f"$ref summary description servers parameters additionalOperations {' '.join(METHODS)}",
    "operation": "tags summary description externalDocs operationId parameters requestBody responses callbacks "
    "deprecated security servers x-effect x-contract x-gecko",
}
"""Known keys by object; a key that resembles one of them is reported as a problem."""
_OURS = {key for keys in _KEYS.values() for key in keys.split() if key.startswith("x-")}


class _Operation(NamedTuple):
    path: str
    method: str
    item: JsonObject
    place: Place
    """Place of the path item."""
    value: Any
    here: Place
    """Place of the operation."""


def read_openapi(
    source: str | Path | Mapping[str, Any], *, allow_remote: bool = False, parsed: JsonObject | None = None
) -> ToolkitParts:
    """Return the toolkit of an OpenAPI document, without real functions; arguments as for `Toolkit.from_openapi`.

    Raises:
        ToolkitError: It is not an OpenAPI document, or no operation can be read; the message names the place.
    """
    documents = Documents(source, allow_remote=allow_remote, parsed=parsed)
    root, broken = expect_object(documents.at(documents.root), documents.root), list[tuple[ToolkitError, str]]()
    if str(root.get("swagger")) in ("2.0", "2"):
        root, broken = upgrade(root, documents)
    reader = _DocumentReader(documents, root, _version(root, documents.root))
    for error, name in broken:
        reader.leave_out(error, name)
    return reader.read()


def _version(root: JsonObject, place: Place) -> Version:
    if "swagger" in root:
        raise error_at(
            place / "swagger", f"this is Swagger {str(root['swagger'])[:10]}: supported are 2.0 and 3.0 to 3.2"
        )
    if "openapi" not in root:
        found = name_format(root) or "it has no key 'openapi'; it may be a part of one"
        raise error_at(place, f"not an OpenAPI document: {found}")
    version = str(root["openapi"])
    if not re.match(r"3\.\d+(\.|$)", version):
        raise error_at(place / "openapi", f"unsupported version {version[:20]!r}; expected 3.0, 3.1 or 3.2")
    return "3.0" if version.startswith("3.0") else "3.1"  # later versions are read as 3.1


class _DocumentReader:
    def __init__(self, documents: Documents, root: JsonObject, version: Version) -> None:
        self._documents, self._root, self._version = documents, root, version
        self._place = documents.root
        self._problems: list[Problem] = []
        self._broken: ToolkitError | None = None
        """The error to raise if no operation can be read completely."""
        self._is_any_whole = False
        self._source: JsonObject = {**root, "paths": {}}
        """The document to keep; operations are added as they are read."""
        self._schemas = SchemaReader(documents, version=version)
        self._servers = ServerReader(documents, root)
        for error, name in self._servers.broken:
            self.leave_out(error, name)
        self._arguments = ArgumentReader(documents, self._schemas, keys=self._servers.keys)
        listed = [one for one in root.get("tags") or () if isinstance(one, dict)]
        self._parents = {str(one.get("name")): one["parent"] for one in listed if isinstance(one.get("parent"), str)}
        self._lets = self._own("x-contract-let")
        self._requires = self._own("x-contract-requires")
        self._state_schema = self._read_state_schema()
        self._state = of_state(self._state_schema)

    def _own(self, key: str) -> JsonObject:
        return expect_object(member(self._root, key, {}), self._place / key)

    def leave_out(self, error: ToolkitError, name: str) -> None:
        """Report a part that cannot be read."""
        self._broken = self._broken or error
        self._note(name, f"left out: {error}")

    def _note(self, name: str, *messages: str) -> None:
        self._problems += [Problem(name, "broken", message) for message in messages]

    def read(self) -> ToolkitParts:
        self._note(self._place.document, *_find_misspelt(self._root, self._place, "document"))
        operations = list(self._operations())
        tools = [self._read(one, name) for one, name in zip(operations, _assign_names(operations), strict=True)]
        if self._broken is not None and not self._is_any_whole:
            raise self._broken
        if bundled := self._documents.bundle():
            self._source["x-gecko"] = bundled
        if self._servers.is_remote:
            self._source["servers"] = [self._servers.server()]
        whole, title = [tool for tool in tools if tool], str(self._own("info").get("title") or "")
        return ToolkitParts(whole, self._lets, self._invariants(), self._state_schema, title, self._problems)

    def _operations(self) -> Iterator[_Operation]:
        here = self._place / "paths"
        if self._root.get("paths") is None and (
            self._version == "3.0" or not self._root.keys() & {"webhooks", "components"}
        ):
            raise error_at(here, "is missing: an OpenAPI document lists its operations there")
        seen: set[str] = set()
        paths, here = self._documents.part(self._root, "paths", self._place)
        for path, item in paths.items():
            if path.startswith("x-"):
                continue
            absolute = path if path.startswith("/") else f"/{path}"
            try:
                if absolute in seen:
                    raise error_at(here / path, f"{absolute} is given twice")
                value, place = self._documents.follow(member({"": item}, "", {}), here / path)
                whole = expect_object(value, place)
            except ToolkitError as error:
                self.leave_out(error, path)
                continue
            seen.add(absolute)
            self._note(path, *_find_misspelt(whole, place, "path"))
            others, there = whole.get("additionalOperations"), place / "additionalOperations"
            found = [(method, one, place / method) for method, one in whole.items() if method in METHODS]
            found += [(name, one, there / name) for name, one in others.items()] if isinstance(others, dict) else []
            yield from (_Operation(absolute, method, whole, place, one, at) for method, one, at in found)

    def _read(self, one: _Operation, name: str) -> ToolSpec | None:
        """Return an operation's tool, and report its unreadable parts."""
        broken, self._broken = self._broken, None
        tool, corners = self._tool(one, name), self._schemas.take_corners()
        self._note(name, *(f"open, as it cannot be read: {text}" for text in corners))
        outside = (error for error in corners.values() if isinstance(error, OutsideError))
        self._broken = self._broken or next(outside, None)
        self._is_any_whole = self._is_any_whole or self._broken is None
        self._broken = broken or self._broken
        return tool

    def _tool(self, one: _Operation, name: str) -> ToolSpec | None:
        """Return an operation's tool; None if it is broken. An invalid contract or `x-gecko` raises."""
        path, method, item, place, *_ = one
        try:
            # OpenAPI allows no references here, but documents split into files use them
            given, here = self._documents.follow(one.value, one.here)
            operation = expect_object(given, here)
            self._note(name, *_find_misspelt(operation, here, "operation"))
            arguments = self._arguments.read(operation, here, item=item, item_place=place, path=path)
        except ToolkitError as error:
            self.leave_out(error, name)
            return None
        response, kept = None, operation
        try:
            response = self._response(operation, here)
        except ToolkitError as error:
            self._broken = self._broken or error
            self._note(name, f"its result schema is invalid, so any JSON is accepted: {error}")
            kept = {**operation, "responses": {}}
        effect = _read_effect(operation, here, method)
        named = arguments.named
        binding = HttpBinding(
            method,
            path,
            {argument: (given.place, given.wire) for argument, given in named.items()},
            {argument: given.style for argument, given in named.items() if given.style},
            arguments.body,
            self._servers.server(operation, item),
            self._servers.security(operation),
            self._responses(kept, here),
        )
        tool = ToolSpec(
            name=name,
            description=_read_description(operation, item),
            parameters=arguments.parameters,
            result=response.schema if response else None,
            effect=effect,
            tags=self._tags(operation),
            examples=pair_examples(named, response) if effect == "read" and response else (),
            binding=binding,
            stated=effect is not None and ("x-effect" in operation or effect == "read" or "x-contract" in operation),
            idempotency=f"header:{arguments.key_header}" if arguments.key_header else None,
            source=self._keep(one, kept) if self._is_kept(one, here) else None,
        )
        tool = apply_own_keys(tool, operation, here)
        return replace(tool, contract=self._contract(operation, here, tool))

    def _is_kept(self, one: _Operation, here: Place) -> bool:
        return one.method in METHODS and {here.document, one.place.document} == {self._place.document}

    def _tags(self, operation: JsonObject) -> tuple[str, ...]:
        """Return an operation's tags and their parent tags."""
        found = list(read_tags(operation.get("tags")))
        for name in found:
            found += [self._parents[name]] if self._parents.get(name, name) not in found else []
        return tuple(found)

    def _keep(self, one: _Operation, operation: JsonObject) -> Source:
        others = {key: value for key, value in one.item.items() if key not in (*METHODS, "additionalOperations")}
        self._source["paths"].setdefault(one.path, others)[one.method] = operation
        return Source(self._source, (one.path, one.method))

    def _contract(self, operation: JsonObject, place: Place, tool: ToolSpec) -> Contract | None:
        if operation.get("x-contract") is None:
            return None
        here = place / "x-contract"
        contract = Contract.load(
            expect_object(operation["x-contract"], here),
            lets=operation.get("x-gecko", {}).get("lets", self._lets),
            requires=self._requires,
            where=f"{here} (tool {tool.name})",
            origin=Origin(here.document, here.tokens),
        )
        return contract.fit(tool.parameters, state=self._state)

    def _response(self, operation: JsonObject, place: Place) -> Media | None:
        """Return schema and examples of a success response; None if the document has none."""
        responses, here = self._documents.part(operation, "responses", place)
        codes = sorted((one for one in responses if re.fullmatch(r"2(\d\d|XX|xx)", one)), key=str.upper)
        found: list[Media] = []
        for code in codes or [one for one in responses if one == "default"]:
            value, where = self._documents.follow(responses[code], here / code)
            if value is not None:
                media = self._arguments.media(expect_object(value, where), where, direction="response")
                found += [media] if media else []
        with_schema = [one for one in found if one.schema is not None]
        if not with_schema and codes and set(codes) <= _NO_CONTENT:
            return Media("", {"type": "null"}, {})
        return next(iter([*with_schema, *found]), None)

    def _responses(self, operation: JsonObject, place: Place) -> dict[str, JsonObject]:
        """Return the documented responses, as in `HttpBinding`, without broken ones."""
        found: dict[str, JsonObject] = {}
        responses, here = self._documents.part(operation, "responses", place)
        for code, given in responses.items():
            if not re.fullmatch(r"[1-5](\d\d|XX|xx)|default", code):
                continue
            with suppress(ToolkitError):
                value, where = self._documents.follow(given, here / code)
                media = self._arguments.media(expect_object(value, where), where, direction="response")
                found[code] = {"media": media.kind, "schema": media.schema, "examples": media.examples} if media else {}
        return found

    def _invariants(self) -> tuple[Invariant, ...]:
        here, read = self._place / "x-contract-invariants", list[Invariant]()
        for one, there in list_items(member(self._root, "x-contract-invariants", []), here):
            origin, given = Origin(there.document, there.tokens), expect_object(one, there)
            read.append(Invariant.load(given, lets=self._lets, where=str(there), origin=origin, state=self._state))
        return tuple(read)

    def _read_state_schema(self) -> JsonObject | None:
        """Return `x-state` with its references resolved."""
        given, here = member(self._root, "x-state", None), self._place / "x-state"
        if given is None:
            return None
        refs = [str(part["$ref"]) for part in walk(expect_object(given, here)) if "$ref" in part]
        if any(ref.startswith("#/") and follow(given, ref) is None for ref in refs):
            reader = SchemaReader(self._documents, version="json")
            return check_schema(reader.read(given, here, direction="request"), where=str(here))
        return check_schema(given, where=str(here), line_of=Origin(here.document, here.tokens).find_line)


def _find_misspelt(value: JsonObject, place: Place, part: str) -> Iterator[str]:
    """Yield a message for each key of a `document`, `path` or `operation` that is likely misspelt."""
    known = _KEYS[part].split()
    for key in value.keys() - {*known}:
        if key in _OURS:
            yield f"{place / key}: is not read here: {part} has no such key"
        elif hint := did_you_mean(key, known, cutoff=0.85):
            yield f"{place / key}: unknown key{hint}"


def _read_description(operation: JsonObject, item: JsonObject) -> str:
    for holder in (operation, item):
        summary, description = (str(holder.get(key) or "").strip() for key in ("summary", "description"))
        if description.startswith(summary.rstrip(".")):
            summary = ""
        if summary or description:
            return "\n\n".join(part for part in (summary, description) if part)
    return ""


def _read_effect(operation: JsonObject, place: Place, method: str) -> Effect | None:
    given = member(operation, "x-effect", _EFFECTS.get(method, "unknown"))
    if given not in (*get_args(Effect), "unknown"):
        raise error_at(place / "x-effect", f"must be read, write or unknown, not {given!r}")
    effect: Effect | None = None if given == "unknown" else given
    return effect


def _assign_names(operations: Sequence[_Operation]) -> list[str]:
    """Return one unique name per operation; exported names first, then valid operationIds, then derived names."""
    names, ids, taken = dict[int, str](), list[str](), set[str]()
    for index, one in enumerate(operations):
        given = one.value if isinstance(one.value, dict) else {}
        kept = given["x-gecko"].get("name") if isinstance(given.get("x-gecko"), dict) else None
        names |= {index: kept} if isinstance(kept, str) else {}
        ids.append(given["operationId"] if isinstance(given.get("operationId"), str) else "")
    taken |= {*names.values()}
    for index, name in enumerate(ids):
        if index not in names and VALID.fullmatch(name) and name not in taken:
            names[index] = name
            taken.add(name)
    for index, one in enumerate(operations):
        if index not in names:
            plain = valid_name(ids[index]) if ids[index].strip() else operation_name(one.method, one.path)
            names[index] = unique_name(plain, taken)
            taken.add(names[index])
    return [names[index] for index in range(len(operations))]
