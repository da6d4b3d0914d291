"""Documents and the references between them: `$ref` to the same document, to a file beside it, to the web if allowed.

A document is untrusted text, and what a reference brings in ends up in prompts. So a reference reads only
`.yaml`, `.yml` and `.json` files inside the folder of the document that the user named (links followed), never a path
from elsewhere; a document given as a dict has no folder and so no files. The web is refused unless the user allowed it,
and then it is `https` only, with a time and a size limit. A document that the user names at plain `http` on this
machine, as a server in development has it, is read, and may refer to others of that server.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin

from ...errors import ToolkitError
from ...state import Json, JsonObject
from ...values.documents import read_document
from ..names import unique_name

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_DOCUMENTS = 10_000
MAX_REMOTE = 100
MAX_DEPTH = 100

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document: `petstore.yaml#/paths/~1pets/get`."""

    document: str
    tokens: tuple[str, ...] = ()

    def __truediv__(self, token: str | int) -> Place:
        return Place(self.document, (*self.tokens, str(token)))

    def __str__(self) -> str:
        path = "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in self.tokens)
        return f"{self.document}#{path}" if path else self.document


def pointer_to(tokens: tuple[str, ...]) -> str:
    """Return a reference to a place in the same document."""
    return quote(str(Place("", tokens)), safe="#/~")


def error_at(place: Place, why: str) -> ToolkitError:
    """Return the error for something wrong at a place."""
    return ToolkitError(f"{place}: {why}")


def json_type(value: Any) -> str:
    """Return the JSON type of a value, in words for messages."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def expect_object(value: Any, place: Place) -> JsonObject:
    """Return the value, if it is an object. Raises ToolkitError with the place."""
    if not isinstance(value, dict):
        raise error_at(place, f"must be an object, not {json_type(value)}")
    return value


def expect_list(value: Any, place: Place) -> list[Any]:
    """Return the value, if it is a list. Raises ToolkitError with the place."""
    if not isinstance(value, list):
        raise error_at(place, f"must be a list, not {json_type(value)}")
    return value


def list_items(value: Any, place: Place) -> list[tuple[Any, Place]]:
    """Return a list's items with their places. Raises ToolkitError with the place."""
    return [(item, place / index) for index, item in enumerate(expect_list(value, place))]


def member(holder: JsonObject, key: str, default: Json) -> Json:
    """Return an object's value under a key; the default where it is missing or null, as in YAML's `parameters:`."""
    value = holder.get(key)
    return default if value is None else value


def to_json(value: Any, place: Place) -> Json:
    """Return a copy of a Python value as plain JSON.

    Keys that are whole numbers and dates become the text they were in the file: YAML readers other than ours turn
    `200:` and `2024-09-01` into such.

    Raises:
        ToolkitError: Something has no JSON value; the message names the place.
    """
    if len(place.tokens) > MAX_DEPTH:
        raise ToolkitError(f"{place.document}: nested more than {MAX_DEPTH} levels deep, or it holds itself")
    if isinstance(value, Mapping):
        return _object_to_json(value, place)
    if isinstance(value, list | tuple):
        return [to_json(one, place / index) for index, one in enumerate(value)]
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise error_at(place, f"{str(value)[:60]!r} ({type(value).__name__}) has no JSON value")


def _object_to_json(value: Mapping[Any, Any], place: Place) -> JsonObject:
    plain: JsonObject = {}
    for key, member in value.items():
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise error_at(place, f"the key {key!r} must be text")
        if str(key) in plain:
            raise error_at(place, f"the key {str(key)!r} is given twice")
        plain[str(key)] = to_json(member, place / key)
    return plain


class Documents:
    """The user's document (a path, an `https` address, a dict) and those that it refers to, each read once.

    `label` names a dict in messages; `parsed` is what the file holds, where it has been read already.

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
        self._folder: Path | None = None
        self._shown_folder = Path()
        self._values: dict[str, Json] = {}
        self._parts: dict[str, str] = {}
        self.root = Place(label)
        if isinstance(source, Mapping):
            self._values[label] = to_json(source, self.root)
        elif isinstance(source, str) and _SCHEME.match(source) and "//" in source[:12]:
            self.root = Place(self._remote(source, self.root))
        else:
            self.root = Place(_check_path(source))
            self._shown_folder = Path(source).parent
            self._values[self.root.document] = read_document(Path(source)) if parsed is None else parsed
            self._folder = self._shown_folder.resolve()

    def at(self, place: Place) -> Json:
        """Return the value at a place that exists."""
        return self._find(place)

    def replace_root(self, value: JsonObject) -> None:
        """Put another value in the place of the user's document."""
        self._values[self.root.document] = value

    def bundle(self, paths: JsonObject) -> JsonObject:
        """Return the user's document with other `paths`, what it refers to in other documents in its `x-gecko`.

        What stands in `paths` is what `rooted` returns.
        """
        whole = self.rooted({**expect_object(self.at(self.root), self.root), "paths": {}}, self.root)
        parts: JsonObject = {}
        while unread := sorted(self._values.keys() - parts.keys() - {self.root.document}):
            parts |= {name: self.rooted(self._values[name], Place(name)) for name in unread}
        named = {self._part_of(name): part for name, part in parts.items()}
        return {**whole, "paths": paths, **({"x-gecko": {"documents": named}} if named else {})}

    def rooted(self, value: Any, place: Place) -> Any:
        """Return a copy of what stands at a place; its references lead from the root of the bundled document."""
        if isinstance(value, list):
            return [self.rooted(one, place / index) for index, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        moved = {key: self.rooted(one, place / key) for key, one in value.items()}
        reference, is_root = value.get("$ref"), place.document == self.root.document
        if isinstance(reference, str) and not (is_root and reference.startswith("#")):
            with suppress(ToolkitError):  # it leads nowhere, or is data
                target = self.resolve(reference, place)
                own = target.document == self.root.document
                outer = () if own else ("x-gecko", "documents", self._part_of(target.document))
                moved["$ref"] = pointer_to((*outer, *target.tokens))
        return moved

    def _part_of(self, document: str) -> str:
        """Return the name of another document in the bundled one: that of its file, as definitions are named by it."""
        if document not in self._parts:
            stem = document.replace("\\", "/").rpartition("/")[2].partition(".")[0]
            self._parts[document] = unique_name(stem, self._parts.values())
        return self._parts[document]

    def follow(self, value: Any, place: Place) -> tuple[Any, Place]:
        """Return the value, or what it refers to if it is a reference, or a reference to a reference.

        Raises:
            ToolkitError: A reference leads nowhere, to itself, or to where it may not.
        """
        seen: list[Place] = []
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            if place in seen:
                raise error_at(place, f"$ref {value['$ref']!r} leads back to itself")
            seen.append(place)
            place = self.resolve(value["$ref"], place)
            value = self.at(place)
        return value, place

    def resolve(self, reference: str, at: Place) -> Place:
        """Return the place that a reference means, which stands `at` another one.

        Raises:
            ToolkitError: It leads nowhere, or to where it may not; the message names `at`.
        """
        address, _, fragment = reference.partition("#")
        document = self._document(address, at) if address else at.document
        if fragment and not fragment.startswith("/"):
            raise error_at(at, f"$ref {reference!r} names an $anchor, which is not read: write the path (`#/...`)")
        tokens = tuple(unquote(one).replace("~1", "/").replace("~0", "~") for one in fragment.split("/")[1:])
        target = Place(document, tokens)
        if self._find(target) is _MISSING:
            raise error_at(at, f"$ref {reference!r} leads nowhere: {document} has no such place")
        return target

    def _find(self, place: Place) -> Any:
        value = self._values[place.document]
        for token in place.tokens:
            if isinstance(value, dict):
                value = value.get(token, _MISSING)
            elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
                value = value[int(token)]
            else:
                return _MISSING
        return value

    def _document(self, address: str, at: Place) -> str:
        if len(self._values) >= MAX_DOCUMENTS:
            raise error_at(at, f"more than {MAX_DOCUMENTS} documents refer to each other")
        if at.document.startswith(("https://", "http://")):
            return self._remote(urljoin(at.document, address), at)
        if _SCHEME.match(address) or address.startswith("//"):
            return self._remote(address, at)
        return self._file(unquote(address), at)

    def _file(self, address: str, at: Place) -> str:
        if self._folder is None:
            raise error_at(
                at, f"$ref {address!r} names a file, but a document given as a dict has no folder; give its path"
            )
        try:
            here = (self._folder / Path(at.document).relative_to(self._shown_folder)).parent
            path = (here / address).resolve()
            inside = None if Path(address).is_absolute() else path.relative_to(self._folder)
        except (OSError, ValueError):
            inside = None
        if inside is None:
            raise error_at(at, f"$ref {address!r} leads out of the document's folder; only files inside it are read")
        if path.suffix.lower() not in SUFFIXES:
            raise error_at(at, f"$ref {address!r} must name a .yaml, .yml or .json file")
        shown = str(self._shown_folder / inside)
        if shown not in self._values:
            try:
                self._values[shown] = read_document(Path(shown))
            except ToolkitError as error:
                raise error_at(at, f"$ref {address!r}: {error}") from None
        return shown

    def _remote(self, address: str, at: Place) -> str:
        url = address.partition("#")[0]
        from .remote import fetch_document, local_origin

        origin = local_origin(url)
        is_local = bool(origin) and (not self._values or origin == local_origin(at.document))
        if not is_local and not url.lower().startswith("https://"):
            raise error_at(at, f"cannot read {url!r}: only files inside the document's folder and https addresses")
        if not is_local and not self._allow_remote:
            raise error_at(at, f"{url!r} is on the web: not read without allow_remote=True (--allow-remote)")
        if url not in self._values:
            if sum(one.startswith(("https://", "http://")) for one in self._values) >= MAX_REMOTE:
                raise error_at(at, f"more than {MAX_REMOTE} documents on the web refer to each other")
            try:
                self._values[url] = fetch_document(url)
            except ToolkitError as error:
                raise error_at(at, str(error)) from None
        return url


def _check_path(source: Any) -> str:
    if not isinstance(source, str | Path):
        raise ToolkitError(f"expected a document's path, or the document as a dict, got {json_type(source)}")
    if "\n" in str(source):
        raise ToolkitError("expected a document's path, got its text; pass the path, or the document as a dict")
    return str(source)
