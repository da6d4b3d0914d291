"""Documents and the references between them: `$ref` within a document, to files beside it, to the web if allowed.

A document is untrusted, and referenced content ends up in prompts. So only `.yaml`, `.yml` and `.json` files inside the
folder of the user's document are read (symbolic links resolved). The web is refused unless the user allows it, and then
only `https`, with limits on time and size. A document that the user names at plain `http` on this machine is read, and
may refer to others of the same server.

An exported document (`to_openapi`) contains the documents that it refers to, in its `x-gecko`: `documents` by the paths
of references, and the web `address` that it was read from.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from ...errors import ToolkitError
from ...state import Json, JsonObject
from ...values.documents import parse_document, read_document
from ...values.places import json_type, pointer
from .addresses import Addresses, find_base, find_recursive

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_REMOTE = 100
MAX_BYTES = 10_000_000
TIMEOUT_S = 10.0

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WEB = ("https://", "http://")
MISSING = object()


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document: `petstore.yaml#/paths/~1pets/get`."""

    document: str
    tokens: tuple[str, ...] = ()

    def __truediv__(self, token: str | int) -> Place:
        return Place(self.document, (*self.tokens, str(token)))

    def __str__(self) -> str:
        return f"{self.document}#{pointer(self.tokens)}" if self.tokens else self.document


class OutsideError(ToolkitError):
    """A referenced document that cannot be read."""


def error_at(place: Place, why: str, kind: type[ToolkitError] = ToolkitError) -> ToolkitError:
    return kind(f"{place}: {why}")


def expect_object(value: Any, place: Place) -> JsonObject:
    """Return the value. Raises ToolkitError with the place if it is not an object."""
    if not isinstance(value, dict):
        raise error_at(place, f"must be an object, not {json_type(value)}")
    return value


def list_items(value: Any, place: Place) -> list[tuple[Any, Place]]:
    """Return a list's items with their places. Raises ToolkitError with the place if it is not a list."""
    if not isinstance(value, list):
        raise error_at(place, f"must be a list, not {json_type(value)}")
    return [(item, place / index) for index, item in enumerate(value)]


def member(holder: JsonObject, key: str, default: Json) -> Json:
    """Return an object's value, or the default if it is missing or null (YAML's empty `parameters:`)."""
    value = holder.get(key)
    return default if value is None else value


def to_json(value: Any, where: str) -> Any:
    """Return a copy of a Python value as plain JSON; numeric keys and dates become text.

    Raises:
        ToolkitError: A value has no JSON form, or is nested too deeply.
    """
    try:
        text = json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolkitError(f"{where}: it is not JSON: {error}") from None
    return parse_document(text, where=where)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else dict(value)


class Documents:
    """The user's document and the documents that it refers to, each read once.

    Args:
        source, allow_remote, parsed: As for `Toolkit.from_openapi`.
        label: Name of a dict in messages.

    Raises:
        ToolkitError: The document cannot be read.
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        allow_remote: bool = False,
        label: str = "the document",
        parsed: JsonObject | None = None,
    ) -> None:
        self._allow_remote = allow_remote
        self._origin = ""
        self._folder: Path | None = None
        self._values: dict[str, Json] = {}
        self._found: dict[str, Addresses] = {}
        self._reaching = set[Place]()
        if isinstance(source, Mapping):
            self.root = Place(label)
            self._values[label] = to_json(source, label)
        elif isinstance(source, str) and _SCHEME.match(source) and "//" in source[:12]:
            self._origin = _local_origin(source)
            self.root = Place(self._remote(source, Place(label)))
        elif not isinstance(source, str | Path):
            raise ToolkitError(f"expected a document's path, or the document as a dict, got {json_type(source)}")
        else:
            self.root = Place(str(source))
            self._values[str(source)] = read_document(source) if parsed is None else parsed
            self._folder = Path(source).parent.resolve()
        self._open_bundle()

    def _open_bundle(self) -> None:
        """Add the documents that an exported document contains."""
        value, place = self.at(self.root), self.root / "x-gecko"
        own = member(value, "x-gecko", {}) if isinstance(value, dict) else {}
        others = expect_object(member(expect_object(own, place), "documents", {}), place / "documents")
        if str(own.get("address", "")).startswith(_WEB):
            self.root = Place(own["address"])
            self._values = {self.root.document: value}
        for name, one in others.items():
            self._values[name if name.startswith(_WEB) else self._beside(self.root, name)] = one

    def bundle(self) -> JsonObject:
        """Return the other documents as an export keeps them under `x-gecko`; {} if there are none."""
        root, folder = self.root.document, os.path.dirname(self.root.document) or "."
        others = {name: one for name, one in self._values.items() if name != root}
        if not others or root.startswith(_WEB):
            return {"address": root, "documents": others} if others else {}
        names = {name: name if name.startswith(_WEB) else os.path.relpath(name, folder) for name in others}
        return {"documents": {names[name].replace(os.sep, "/"): one for name, one in others.items()}}

    def replace_root(self, value: JsonObject) -> None:
        self._values[self.root.document] = value
        self._found.pop(self.root.document, None)

    def follow(self, value: Any, place: Place) -> tuple[Any, Place]:
        """Return the value, or the final target of its `$ref`s, with its place. Raises ToolkitError as `resolve`."""
        seen: list[Place] = []
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            if place in seen:
                raise error_at(place, f"$ref {value['$ref']!r} leads back to itself")
            seen.append(place)
            place = self.resolve(value["$ref"], place)
            value = self.at(place)
        return value, place

    def part(self, holder: JsonObject, key: str, place: Place) -> tuple[JsonObject, Place]:
        """Return an object's member, an object or a reference to one, and its place. Raises ToolkitError."""
        value, here = self.follow(member(holder, key, {}), place / key)
        return expect_object(value, here), here

    def resolve(self, reference: str, at: Place) -> Place:
        """Return the place of a reference's target. Raises ToolkitError with `at` if it is not allowed or missing."""
        address, _, fragment = reference.partition("#")
        base, tokens = find_base(self._values[at.document], at.tokens)
        resource = self._find_resource(address, base, at) if address else Place(at.document, tokens)
        inner = tuple(unquote(one).replace("~1", "/").replace("~0", "~") for one in fragment.split("/")[1:])
        near = [Place(resource.document, (*resource.tokens, *inner)), Place(resource.document, inner)]
        if fragment and not fragment.startswith("/"):
            anchors = self._addresses(resource.document).anchors.get(unquote(fragment), [])
            inside = [one for one in anchors if one[: len(resource.tokens)] == resource.tokens]
            near = [Place(resource.document, one) for one in (inside or anchors)[:1]]
        for target in near:
            if self.at(target) is not MISSING:
                return target
        for target in near:
            if (found := self._reach(target)) is not None:
                return found
        raise error_at(at, f"$ref {reference!r} leads nowhere: {resource.document} has no such place")

    def _reach(self, target: Place) -> Place | None:
        """Return the place that a pointer leads to through references on its way; None if it leads nowhere.

        Documents in parts have them: `components: {schemas: {$ref: schemas.yaml}}`, and `#/components/schemas/Pet`.
        """
        if target in self._reaching:
            return None
        self._reaching.add(target)
        try:
            place = Place(target.document)
            for token in target.tokens:
                place = self.follow(self.at(place), place)[1] / token
            return None if self.at(place) is MISSING else place
        finally:
            self._reaching.discard(target)

    def resolve_schema(self, key: str, reference: str, at: Place) -> Place:
        """Return the target of a `$ref`, `$dynamicRef` or `$recursiveRef` of a schema. Raises ToolkitError."""
        if key == "$ref":
            self.follow({"$ref": reference}, at)
            return self.resolve(reference, at)
        if key == "$recursiveRef":
            tokens = find_recursive(self._values[at.document], at.tokens) if reference == "#" else None
            if tokens is None:
                raise error_at(at / key, f"cannot be read: {reference[:60]}")
            return Place(at.document, tokens)
        name = unquote(reference.partition("#")[2])
        if sum(len(self._addresses(document).dynamic.get(name, ())) for document in self._values) > 1:
            raise error_at(at / key, f"{reference[:60]!r} has more than one $dynamicAnchor")
        return self.resolve(reference, at)

    def _find_resource(self, address: str, base: str, at: Place) -> Place:
        uri = urljoin(base, address)
        for document in self._values:
            if uri in (found := self._addresses(document).ids):
                return Place(document, found[uri])
        return Place(self._load(address, at))

    def _addresses(self, document: str) -> Addresses:
        if document not in self._found:
            self._found[document] = Addresses(self._values[document])
        return self._found[document]

    def at(self, place: Place) -> Any:
        """Return the value at a place, or `MISSING`."""
        value = self._values[place.document]
        for token in place.tokens:
            if isinstance(value, dict):
                value = value.get(token, MISSING)
            elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
                value = value[int(token)]
            else:
                return MISSING
        return value

    def _load(self, address: str, at: Place) -> str:
        if at.document.startswith(_WEB):
            return self._remote(urljoin(at.document, address), at)
        if _SCHEME.match(address) or address.startswith("//"):
            return self._remote(address, at)
        return self._file(unquote(address), at)

    def _beside(self, at: Place, address: str) -> str:
        if at.document.startswith(_WEB):
            return urljoin(at.document, address)
        return os.path.normpath(os.path.join(os.path.dirname(at.document), address))

    def _file(self, address: str, at: Place) -> str:
        shown = self._beside(at, address)
        if shown in self._values:
            return shown
        if self._folder is None:
            raise error_at(
                at, f"$ref {address!r}: a document given as a dict has no folder; give its path", OutsideError
            )
        try:
            path = Path(shown).resolve()
            is_inside = path.is_relative_to(self._folder)
        except (OSError, ValueError):
            is_inside = False
        if not is_inside:
            raise error_at(
                at, f"$ref {address!r} leads out of the document's folder; only files inside it are read", OutsideError
            )
        if path.suffix.lower() not in SUFFIXES:
            raise error_at(at, f"$ref {address!r} must name a .yaml, .yml or .json file", OutsideError)
        try:
            self._values[shown] = read_document(shown)
        except ToolkitError as error:
            raise error_at(at, f"$ref {address!r}: {error}", OutsideError) from None
        return shown

    def _remote(self, address: str, at: Place) -> str:
        url = address.partition("#")[0]
        if url in self._values:
            return url
        is_local = self._origin and _local_origin(url) == self._origin and not at.document.startswith("https://")
        if not is_local and not url.lower().startswith("https://"):
            raise error_at(
                at, f"cannot read {url!r}: only files inside the document's folder and https addresses", OutsideError
            )
        if not is_local and not self._allow_remote:
            raise error_at(
                at, f"{url!r} is on the web: not read without allow_remote=True (--allow-remote)", OutsideError
            )
        if sum(one.startswith(_WEB) for one in self._values) >= MAX_REMOTE:
            raise error_at(at, f"more than {MAX_REMOTE} documents on the web refer to each other", OutsideError)
        try:
            self._values[url] = fetch_document(url)
        except ToolkitError as error:
            raise error_at(at, str(error), OutsideError) from None
        return url


def _local_origin(url: str) -> str:
    """Return scheme, host and port of a plain http address of this machine; "" for any other."""
    try:
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        return f"http://{parts.hostname}:{parts.port or 80}" if is_local else ""
    except ValueError:
        return ""


def fetch_document(url: str) -> Json:
    """Return a document from the web (https only) or from this machine (http). Raises ToolkitError."""
    origin = _local_origin(url)

    def check(request: httpx.Request) -> None:
        if _local_origin(str(request.url)) != origin or (not origin and request.url.scheme != "https"):
            raise ToolkitError(f"{url}: redirects to {str(request.url)!r}, which is not read")

    raw = bytearray()
    client = httpx.Client(follow_redirects=True, timeout=TIMEOUT_S, event_hooks={"request": [check]})
    try:
        with client, client.stream("GET", url, headers={"User-Agent": "gecko-graph"}) as reply:
            reply.raise_for_status()
            for chunk in reply.iter_bytes():
                raw += chunk
                if len(raw) > MAX_BYTES:
                    raise ToolkitError(f"{url}: larger than {MAX_BYTES // 1_000_000} MB; is this the right address?")
        return parse_document(raw.decode("utf-8-sig"), where=url)
    except UnicodeDecodeError:
        raise ToolkitError(f"{url}: not UTF-8") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolkitError(f"{url}: cannot be fetched: {str(error).partition(chr(10))[0]}") from None


_CONVERT = "convert it to OpenAPI first"
_FORMATS: tuple[tuple[Callable[[Mapping[str, Any]], Any], str], ...] = (
    (lambda root: "_postman_id" in root["info"] or "getpostman" in root["info"]["schema"],
     f"a Postman collection: {_CONVERT}"),
    (lambda root: root["asyncapi"], f"an AsyncAPI document: {_CONVERT}"),
    (lambda root: root["kind"].startswith("discovery#"), f"a Google discovery document: {_CONVERT}"),
    (lambda root: root.get("data", root)["__schema"],
     "a GraphQL schema, which is not read: describe its operations as tools with `name`, `description`, `parameters`"),
    (lambda root: root["mcpServers"],
     "a configuration of MCP servers: in Python, Toolkit.from_mcp(...) takes its `mcpServers`"),
    (lambda root: root["log"]["entries"], "a HAR file with recorded calls: `gecko-graph learn` reads those"),
    (lambda root: root["arazzo"], "an Arazzo document: give the OpenAPI documents of its `sourceDescriptions`"),
)  # fmt: skip


def name_format(document: Any) -> str | None:
    """Return the name of a document's format, and what to do with it; None if it is none of those that are known."""
    for holds, name in _FORMATS if isinstance(document, Mapping) else ():
        try:
            if holds(document):
                return name
        except (KeyError, TypeError, AttributeError):
            continue
    return None
