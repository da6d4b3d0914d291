"""A request as a call of an OpenAPI operation: the inverse of `request`, for every style that keeps the values.

Texts get their types from the operation's schemas. What a style writes alike for two values (an empty list and no
list, a delimiter within a value) is read as the simpler one; a parameter that the operation does not have is a reason
not to read the request: a rule that was learned without it could be wrong.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_plus, urlsplit

import httpx

from ...schemas.subschemas import IN_PLACE, follow
from ...state import Json, JsonObject
from ..spec import HttpBinding, ToolSpec
from .credentials import Server, resolve_server
from .request import DELIMITERS, FORMS, JSON_MEDIA, OCTETS, PATH_STYLES, VARIABLE, field_style, format_scalar, is_file_part

_SPLIT = {",": ",", "%20": r"%20|\+", "%7C": r"%7[Cc]|\|"}
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
Pairs = list[tuple[str, str]]


class CannotRead(ValueError):
    """A request that is no call of an operation, with the cause: no value of it."""


class Operations:
    """The operations of a toolkit, found by method and address.

    Args:
        tools: The tools; those without an operation are never found.
        server: As for `Toolkit.from_openapi`; without it a document's own server counts, and of one without a host its
            path on any host.
    """

    def __init__(self, tools: Iterable[ToolSpec], server: Server | None = None) -> None:
        self._all: list[tuple[ToolSpec, HttpBinding, str, str]] = []
        for tool in tools:
            if tool.binding is not None:
                url = resolve_server(tool.binding.server, server) or str((tool.binding.server or {}).get("url", ""))
                parts = urlsplit(url if "{" not in url else "")
                self._all.append((tool, tool.binding, parts.netloc, parts.path.rstrip("/")))

    def read(self, request: httpx.Request) -> tuple[ToolSpec, JsonObject]:
        """Return the tool and the arguments of a request, with the fewest variables in its path. Raises CannotRead."""
        path = request.url.raw_path.decode().partition("?")[0]
        near = [one for one in self._all if one[2] in ("", request.url.netloc.decode())]
        fits = [one for one in near if _path_pattern(one[3], one[1].path).fullmatch(path)]
        made = [one for one in fits if one[1].method.upper() == request.method]
        if not made:
            what = "no operation has its method" if fits else "no operation has its path" if near else "another server"
            raise CannotRead(what)
        least = min(len(VARIABLE.findall(one[1].path)) for one in made)
        for tool, _, _, base in (some := [one for one in made if len(VARIABLE.findall(one[1].path)) == least]):
            try:
                return tool, read_request(tool, base, request)
            except CannotRead:
                if tool is some[-1][0]:
                    raise
        raise CannotRead("no operation has its path")


def read_request(tool: ToolSpec, base: str, request: httpx.Request) -> JsonObject:
    """Return the arguments that `build_request` makes a request of; of `base` only the path counts.

    Raises:
        CannotRead: It is no request of this operation.
    """
    binding = tool.binding or HttpBinding("post", "/")
    reader = _Reader(tool, binding)
    path, _, query = request.url.raw_path.decode().partition("?")
    found = _path_pattern(urlsplit(base).path.rstrip("/"), binding.path).fullmatch(path)
    if found is None or request.method != binding.method.upper():
        raise CannotRead("no operation has its path")
    template, _, fixed = binding.path.partition("#")[0].partition("?")
    raw = dict(zip(VARIABLE.findall(template), found.groups(), strict=True))
    pairs = [(key, value) for key, _, value in (one.partition("=") for one in query.split("&") if one)]
    for one in filter(None, fixed.split("&")):
        pattern = re.compile(_escape(one))
        at = next((n for n, pair in enumerate(pairs) if pattern.fullmatch("=".join(pair))), None)
        if at is None:
            raise CannotRead("no operation has its path")
        hit = pattern.fullmatch("=".join(pairs.pop(at)))
        raw |= dict(zip(VARIABLE.findall(one), hit.groups() if hit else (), strict=True))
    args = {one.name: one.read_simple(raw[wire]) for wire, one in reader.fields("path").items() if wire in raw}
    args |= reader.read_pairs(pairs, reader.fields("query"), unquote_plus, is_closed=True)
    for wire, one in reader.fields("header").items():
        if wire.lower() in request.headers:
            args[one.name] = one.read_simple(request.headers[wire], decode=str)
    crumbs = [(key, value) for key, _, value in (one.partition("=") for one in _cookies(request))]
    return args | reader.read_pairs(crumbs, reader.fields("cookie"), unquote) | reader.read_body(request)


def _cookies(request: httpx.Request) -> list[str]:
    return [one for one in re.split(r";\s*", request.headers.get("cookie", "")) if one]


@lru_cache(maxsize=4096)
def _path_pattern(base: str, path: str) -> re.Pattern[str]:
    return re.compile(_escape(base + path.partition("#")[0].partition("?")[0]))


def _escape(template: str) -> str:
    """Return a pattern for a template, with a group for each variable."""
    parts = VARIABLE.split(template)  # every second one is a variable's name
    texts = [re.escape(quote(text, safe="/:@!$&'()*+,;=~%[]")) for text in parts[::2]]
    return "([^/&]+?)".join(texts)


class _Schema(NamedTuple):
    """A schema within the tool's parameters, which hold what it refers to."""

    schema: Any
    root: JsonObject

    def made_of(self) -> Iterator[JsonObject]:
        """Yield the schema and those that apply to the same value."""
        waiting = [self.schema]
        for one in waiting:
            if isinstance(one, dict) and len(waiting) < 100:
                yield one
                waiting += [follow(self.root, str(one["$ref"]))] if "$ref" in one else []
                waiting += [each for key in IN_PLACE for each in one.get(key, ())]

    def kinds(self) -> frozenset[str]:
        """Return the types that a value may have; none where the schema does not say."""
        found = set[str]()
        for one in self.made_of():
            given = one.get("type", ())
            found |= {given} if isinstance(given, str) else {*given}
            listed = [*one.get("enum", ()), *([one["const"]] if "const" in one else [])]
            found |= {_TYPES.get(type(value), "null") for value in listed if not given}
            found |= {kind for key, kind in (("properties", "object"), ("items", "array")) if key in one}
        return frozenset(found | ({"integer"} if "number" in found else set()))

    def member(self, key: str | None) -> _Schema:
        """Return the schema of a member, of an item for None."""
        for one in self.made_of():
            inner = one.get("items") if key is None else (one.get("properties") or {}).get(key)
            inner = one.get("additionalProperties") if inner is None and key is not None else inner
            if isinstance(inner, dict):
                return _Schema(inner, self.root)
        return _Schema({}, self.root)

    def takes(self, key: str, *, named: bool) -> bool:
        """Return whether an object of it may have a member, by name or also as a further one."""
        every = list(self.made_of())
        has = any(key in (one.get("properties") or {}) for one in every)
        return has or not (named or any(one.get("additionalProperties") is False for one in every))

    def scalar(self, text: str) -> Json:
        """Return the value that a text stands for."""
        kinds = self.kinds()
        if not kinds or kinds == {"string"}:
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        is_kind = _TYPES.get(type(value), "null") in kinds or (type(value) is float and value.is_integer())
        is_told = "string" not in kinds or format_scalar(value) == text
        return value if is_kind and is_told and not isinstance(value, str) else text

    def listed(self, texts: list[str]) -> Json:
        """Return a list of texts as its value, a single one as itself unless only a list may stand here."""
        kinds = self.kinds()
        if len(texts) == 1 and not ("array" in kinds and not kinds & _SCALARS):
            return self.scalar(texts[0])
        return [self.member(None).scalar(text) for text in texts]

    def tree(self, node: Any) -> Json:
        """Return what texts by their deepObject keys stand for."""
        if isinstance(node, str):
            return self.scalar(node)
        kinds, keys = self.kinds(), list(node)
        if keys == [str(n) for n in range(len(keys))] and ("array" in kinds or not kinds):
            return [self.member(None).tree(each) for each in node.values()]
        return {key: self.member(key).tree(each) for key, each in node.items()}


@dataclass(frozen=True, slots=True)
class _Field:
    """An argument, or a form's member, with its style."""

    name: str
    schema: _Schema
    style: JsonObject = field(default_factory=dict)

    def _parts(self, raw: str, separator: str) -> list[str]:
        """Return the parts of a list or an object; a single one where it may be neither."""
        kinds = self.schema.kinds()
        may_split = kinds & {"array", "object"} or not (kinds or self.style.get("allowReserved"))
        return re.split(_SPLIT.get(separator, re.escape(separator)), raw) if may_split else [raw]

    def _object(self, texts: list[str]) -> Json:
        pairs = zip(texts[::2], texts[1::2], strict=False)
        return {key: self.schema.member(key).scalar(text) for key, text in pairs}

    def _is_object(self) -> bool:
        kinds = self.schema.kinds()
        return "object" in kinds and not kinds & (_SCALARS | {"array"})

    def _content(self, text: str) -> Json:
        if "json" not in str(self.style["content"]):
            return self.schema.scalar(text)
        return _load(text)

    def read_simple(self, raw: str, decode: Callable[[str], str] = unquote) -> Json:
        """Return the value of a path's variable or a header."""
        if "content" in self.style:
            return self._content(decode(raw))
        first, separator, named = PATH_STYLES.get(str(self.style.get("style")), PATH_STYLES["simple"])
        explode, raw = self.style.get("explode", False), raw.removeprefix(first)
        if self._is_object():
            raw = raw.partition("=")[2] if named and not explode else raw
            texts = [text for part in raw.split(separator) for text in part.split("=", 1)] if explode else raw.split(",")
            return self._object([decode(text) for text in texts] if raw else [])
        if decode is str:  # a header's comma is not escaped: only a list is split
            parts = self._parts(raw, ",") if "array" in self.schema.kinds() else [raw]
            return [] if raw == "" and self._only_list() else self.schema.listed(parts)
        parts = self._parts(raw, separator) if explode else [raw]
        parts = [part.partition("=")[2] if named else part for part in parts]
        parts = parts if explode else self._parts(parts[0], ",")
        return self.schema.listed([decode(part) for part in parts])

    def _only_list(self) -> bool:
        kinds = self.schema.kinds()
        return "array" in kinds and not kinds & _SCALARS

    def read_query(self, raws: list[str], decode: Callable[[str], str]) -> Json:
        """Return the value of a query parameter, a cookie or a form's field from all values under its name."""
        if "content" in self.style:
            return self._content(decode(raws[0]))
        kind = str(self.style.get("style", "form"))
        if not self.style.get("explode", kind == "form"):
            raws = self._parts(raws[0], DELIMITERS.get(kind, ","))
            if self._is_object():
                return self._object([decode(raw) for raw in raws])
        return self.schema.listed([decode(raw) for raw in raws])


class _Reader:
    """Reads the parts of one operation's requests."""

    def __init__(self, tool: ToolSpec, binding: HttpBinding) -> None:
        self._tool, self._binding = tool, binding

    def fields(self, place: str) -> dict[str, _Field]:
        """Return the arguments that travel in a place, by their names there."""
        found: dict[str, _Field] = {}
        for name, schema in self._tool.parameters.get("properties", {}).items():
            where, wire = self._binding.places.get(name, ("body", name))
            if where == place:
                style = field_style(self._binding, wire) if place == "body" else self._binding.styles.get(name, {})
                found[wire] = _Field(name, _Schema(schema, self._tool.parameters), style)
        return found

    def read_pairs(
        self, pairs: Pairs, fields: Mapping[str, _Field], decode: Callable[[str], str], *, is_closed: bool = False
    ) -> JsonObject:
        """Return arguments from names and values. Raises CannotRead where `is_closed` and one is none's."""
        named: dict[str, list[str]] = {}
        for key, raw in pairs:
            named.setdefault(decode(key), []).append(raw)
        found: JsonObject = {}
        spread: list[_Field] = []
        for wire, one in fields.items():
            style = one.style.get("style", "form")
            if style == "deepObject":
                deep = {key: named.pop(key)[0] for key in [*named] if key == wire or key.startswith(f"{wire}[")}
                found |= {one.name: one.schema.tree(_nest(wire, deep, decode))} if deep else {}
            elif one.style.get("explode", style == "form") and one._is_object() and "content" not in one.style:
                spread.append(one)
            elif wire in named:
                found[one.name] = one.read_query(named.pop(wire), decode)
        for one in spread:
            own = [key for key in named if one.schema.takes(key, named=not is_closed)]
            if own:
                found[one.name] = {key: one.schema.member(key).scalar(decode(named.pop(key)[0])) for key in own}
        schemes = {str(each.get("name")) for option in self._binding.security for each in option.values()}
        if is_closed and (unknown := sorted(named.keys() - schemes)):
            raise CannotRead(f"a query parameter that {self._tool.name} does not have: {unknown[0]}"[:120])
        return found

    def read_body(self, request: httpx.Request) -> JsonObject:
        """Return the body's arguments."""
        content, fields = request.read(), self.fields("body")
        if not content:
            return {}
        sent = request.headers.get("content-type") or str(self._binding.body.get("media", JSON_MEDIA))
        kind, whole = sent.partition(";")[0].strip().lower(), fields.get("")
        value: Json
        if kind in FORMS and (whole is None or whole._is_object()):
            inner = fields if whole is None else self._members(whole)
            value = self._read_form(kind, sent, content, {wire: each for wire, each in inner.items()})
            return {whole.name: value} if whole else value
        value = _load(content.decode(errors="replace")) if kind.endswith("json") else _as_text(content, kind)
        if whole is not None:
            return {whole.name: value}
        if not isinstance(value, dict):
            raise CannotRead("its body is no object")
        return {fields[wire].name if wire in fields else wire: each for wire, each in value.items()}

    def _members(self, whole: _Field) -> dict[str, _Field]:
        names = {key for one in whole.schema.made_of() for key in one.get("properties") or {}}
        return {key: _Field(key, whole.schema.member(key), field_style(self._binding, key)) for key in sorted(names)}

    def _read_form(self, kind: str, sent: str, content: bytes, fields: Mapping[str, _Field]) -> JsonObject:
        if kind == FORMS[0]:
            text = content.decode(errors="replace")
            pairs = [(key, raw) for key, _, raw in (one.partition("=") for one in text.split("&") if one)]
            return self.read_pairs(pairs, fields, unquote_plus, is_closed=True)
        found: dict[str, list[tuple[bytes, str]]] = {}
        for part in BytesParser().parsebytes(b"content-type: " + sent.encode() + b"\r\n\r\n" + content).walk():
            name = part.get_param("name", header="content-disposition")
            if isinstance(part, Message) and isinstance(name, str):
                payload = part.get_payload(decode=True)
                found.setdefault(name, []).append((payload if isinstance(payload, bytes) else b"", part.get_content_type()))
        made: JsonObject = {}
        for wire, some in found.items():
            one = fields.get(wire) or _Field(wire, _Schema({}, {}))
            file = is_file_part(one.schema.schema, self._tool.parameters)
            made[one.name] = one.schema.listed([_as_text(*each) if file else each[0].decode() for each in some])
        return made


def _nest(wire: str, flat: Mapping[str, str], decode: Callable[[str], str]) -> Any:
    """Return texts under keys such as `a[b][0]` as a tree."""
    tree: Any = {}
    for key, raw in flat.items():
        node, tokens = tree, re.findall(r"\[([^\]]*)\]", key[len(wire) :])
        if not tokens:
            return decode(raw)
        for token in tokens[:-1]:
            node = node.setdefault(token, {})
            if not isinstance(node, dict):
                raise CannotRead("its query nests a value in a text")
        node[tokens[-1] or str(len(node))] = decode(raw)
    return tree


def _as_text(content: bytes, media: str) -> str:
    """Return bytes as text; those of a known media type, and those that are no text, as a `data:` address."""
    try:
        if media in ("", OCTETS) or media.startswith("text/"):
            return content.decode()
    except UnicodeDecodeError:
        pass
    return f"data:{media or OCTETS};base64,{base64.b64encode(content).decode()}"


def _load(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        raise CannotRead("its JSON is broken") from None
    return value
