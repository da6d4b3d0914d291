"""A request as a call of an OpenAPI operation: the inverse of `request`, for every style that keeps the values.

Texts get their types from the operation's schemas. What a style writes alike for two values (an empty list and no list)
is read as the simpler one. A parameter that the operation does not have is a reason not to read the request: a rule
that was learned without it could be wrong.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_plus, urlsplit

import httpx

from ...schemas.subschemas import IN_PLACE, follow
from ...state import Json, JsonObject
from ..spec import HttpBinding, ToolSpec
from .credentials import Server, resolve_server
from .request import DELIMITERS, FORMS, JSON_MEDIA, OCTETS, PATH_STYLES, VARIABLE, field_style, format_scalar

_SPLIT = {"%20": r"%20|\+", "%7C": r"%7[Cc]|\|"}
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
Pairs = list[tuple[str, str]]
Decode = Callable[[str], str]


class CannotRead(ValueError):
    """A request that is no call of an operation; the message is the cause, and holds no value."""


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
        """Return the tool and the arguments of a request. Raises CannotRead."""
        path = request.url.raw_path.decode().partition("?")[0]
        near = [one for one in self._all if one[2] in ("", request.url.netloc.decode())]
        fits = [one for one in near if pattern_of(one[3] + re.split("[?#]", one[1].path)[0]).fullmatch(path)]
        made = [one for one in fits if one[1].method.upper() == request.method]
        why = "no operation has its method" if fits else "no operation has its path" if near else "another server"
        least = min((one[1].path.count("{") for one in made), default=0)
        for tool, _, _, base in (one for one in made if one[1].path.count("{") == least):
            try:
                return tool, read_request(tool, base, request)
            except CannotRead as error:  # several may share a path, with other queries
                why = str(error)
        raise CannotRead(why)


def read_request(tool: ToolSpec, base: str, request: httpx.Request) -> JsonObject:
    """Return the arguments that `build_request` makes a request of; of `base` only the path counts.

    Raises:
        CannotRead: It is no request of this operation.
    """
    binding = tool.binding or HttpBinding("post", "/")
    path, _, query = request.url.raw_path.decode().partition("?")
    template, _, fixed = binding.path.partition("#")[0].partition("?")
    texts = [path, *filter(None, query.split("&"))]
    variables: dict[str, str] = {}
    for one in (urlsplit(base).path.rstrip("/") + template, *filter(None, fixed.split("&"))):
        found = next((hit for hit in map(pattern_of(one).fullmatch, texts) if hit), None)
        if found is None or request.method != binding.method.upper():
            raise CannotRead("no operation has its path")
        texts.remove(found[0])
        variables |= dict(zip(VARIABLE.findall(one), found.groups(), strict=True))
    args = {each.name: each.read(variables[wire]) for wire, each in _parts(tool, "path") if wire in variables}
    args |= _read_pairs(_pairs(texts), _parts(tool, "query"), unquote_plus, tool)
    sent = request.headers
    args |= {each.name: each.read(sent[wire], str) for wire, each in _parts(tool, "header") if wire in sent}
    args |= _read_pairs(_pairs(read_cookies(request)), _parts(tool, "cookie"), unquote)
    return args | _read_body(tool, request)


def read_cookies(request: httpx.Request) -> list[str]:
    """Return a request's cookies, `name=value` each."""
    return [one for one in re.split(r";\s*", request.headers.get("cookie", "")) if one]


@lru_cache(maxsize=4096)
def pattern_of(template: str) -> re.Pattern[str]:
    """Return what an address of this template looks like; each variable is a group."""
    texts = VARIABLE.split(template)[::2]  # every second one is a variable's name
    return re.compile("([^/&]+?)".join(re.escape(quote(text, safe="/:@!$&'()*+,;=~%[]")) for text in texts))


def _pairs(texts: Iterable[str]) -> Pairs:
    return [(key, value) for key, _, value in (one.partition("=") for one in texts if one)]


class _Part(NamedTuple):
    """A schema within a tool's parameters, which hold what it refers to; of an argument with its name and style."""

    schema: Any
    root: JsonObject
    name: str
    style: JsonObject

    def made_of(self) -> Iterator[JsonObject]:
        """Yield the schema and those that apply to the same value."""
        waiting = [self.schema]
        for one in waiting:
            if isinstance(one, dict) and len(waiting) < 100:
                yield one
                waiting += [follow(self.root, str(one["$ref"]))] if "$ref" in one else []
                waiting += [each for key in IN_PLACE for each in one.get(key, ())]

    @property
    def kinds(self) -> frozenset[str]:
        """The types that a value may have; none where the schema does not say."""
        found = set[str]()
        for one in self.made_of():
            listed = [*one.get("enum", ()), *([one["const"]] if "const" in one else [])]
            given = one.get("type") or [_TYPES.get(type(value), "null") for value in listed]
            found |= {given} if isinstance(given, str) else {*given}
            found |= {kind for key, kind in (("properties", "object"), ("items", "array")) if key in one}
        return frozenset(found | ({"integer"} if "number" in found else set()))

    def is_only(self, kind: str) -> bool:
        """Return whether a value is a list (or an object), never a scalar."""
        return kind in self.kinds and not self.kinds & (_SCALARS | ({"array", "object"} - {kind}))

    def names(self) -> list[str]:
        """Return the members that are named."""
        return [key for one in self.made_of() for key in one.get("properties") or {}]

    def inner(self, key: str | None, style: JsonObject | None = None) -> _Part:
        """Return the schema of a member, of an item for None."""
        found: Any = {}
        for one in self.made_of():
            more = one.get("items") if key is None else one.get("additionalProperties")
            found = found or (one.get("properties") or {}).get(key) or (more if isinstance(more, dict) else {})
        return _Part(found, self.root, key or "", style or {})

    def scalar(self, text: str) -> Json:
        """Return the value that a text stands for."""
        kinds = self.kinds
        with suppress(ValueError, RecursionError):
            value: Json = json.loads(text) if kinds - {"string"} else text
            is_kind = _TYPES.get(type(value), "null") in kinds or (type(value) is float and value.is_integer())
            if is_kind and not isinstance(value, str) and ("string" not in kinds or format_scalar(value) == text):
                return value
        return text

    def listed(self, texts: list[str]) -> Json:
        """Return texts as a list, a single one as itself unless only a list may stand here."""
        only = self.is_only("array")
        return [self.inner(None).scalar(each) for each in texts] if only or len(texts) != 1 else self.scalar(texts[0])

    def tree(self, node: Any) -> Json:
        """Return what texts by their deepObject keys stand for."""
        if isinstance(node, str):
            return self.scalar(node)
        if [*node] == list(map(str, range(len(node)))) and ("array" in self.kinds or not self.kinds):
            return [self.inner(None).tree(each) for each in node.values()]
        return {key: self.inner(key).tree(each) for key, each in node.items()}

    def read(self, raw: str, decode: Decode = unquote) -> Json:
        """Return the value of one text: of a path's variable, a header, or a parameter whose style does not explode."""
        if "content" in self.style:
            return _load(decode(raw)) if "json" in str(self.style["content"]) else self.scalar(decode(raw))
        style, explode, kinds = str(self.style.get("style")), self.style.get("explode", False), self.kinds
        first, separator, named = PATH_STYLES.get(style, PATH_STYLES["simple"])
        separator = separator if explode else DELIMITERS.get(style, ",")
        raw = raw.removeprefix(first)
        raw = raw.partition("=")[2] if named and not explode else raw
        # where the schema does not say, a separator that is not escaped is one; in a header nothing is escaped
        may_split = kinds & {"array", "object"} or not (kinds or decode is str or self.style.get("allowReserved"))
        parts = re.split(_SPLIT.get(separator, re.escape(separator)), raw) if may_split else [raw]
        if self.is_only("object"):
            texts = [decode(text) for part in parts for text in (part.split("=", 1) if explode else [part])]
            return {key: self.inner(key).scalar(text) for key, text in zip(texts[::2], texts[1::2], strict=False)}
        texts = [decode(part.partition("=")[2] if named and explode else part) for part in parts]
        return [] if texts == [""] and decode is str and self.is_only("array") else self.listed(texts)

    @property
    def explodes(self) -> bool:
        """Whether each value of a query parameter has a name before it."""
        style = self.style
        return bool(style.get("explode", style.get("style", "form") == "form")) and "content" not in style


def _parts(tool: ToolSpec, place: str) -> list[tuple[str, _Part]]:
    """Return the arguments that travel in a place, by their names there."""
    binding, found = tool.binding or HttpBinding("post", "/"), list[tuple[str, _Part]]()
    for name, schema in tool.parameters.get("properties", {}).items():
        where, wire = binding.places.get(name, ("body", name))
        style = field_style(binding, wire) if place == "body" else binding.styles.get(name, {})
        found += [(wire, _Part(schema, tool.parameters, name, style))] if where == place else []
    return found


def _read_pairs(
    pairs: Pairs, parts: list[tuple[str, _Part]], decode: Decode, closed: ToolSpec | None = None
) -> JsonObject:
    """Return arguments from names and values. Raises CannotRead for one that a `closed` tool does not have."""
    named: dict[str, list[str]] = {}
    for key, raw in pairs:
        named.setdefault(decode(key), []).append(raw)
    found: JsonObject = {}
    for wire, one in sorted(parts, key=lambda pair: pair[1].explodes and pair[1].is_only("object")):
        if one.style.get("style") == "deepObject":
            own = {key: decode(named.pop(key)[0]) for key in [*named] if key == wire or key.startswith(f"{wire}[")}
            found |= {one.name: one.tree(_nest(wire, own))} if own else {}
        elif one.explodes and one.is_only("object"):  # its members stand among the others
            is_open = closed and all(each.get("additionalProperties") is not False for each in one.made_of())
            keys = [key for key in named if is_open or key in one.names()]
            found |= {one.name: {key: one.inner(key).scalar(decode(named.pop(key)[0])) for key in keys}} if keys else {}
        elif wire in named:
            raws = named.pop(wire)
            found[one.name] = one.listed([*map(decode, raws)]) if one.explodes else one.read(raws[0], decode)
    options = closed.binding.security if closed and closed.binding else ()
    unknown = named.keys() - {str(each.get("name")) for option in options for each in option.values()}
    if closed and unknown:
        raise CannotRead(f"a parameter that {closed.name} does not have: {min(unknown)}"[:120])
    return found


def _nest(wire: str, flat: Mapping[str, str]) -> Any:
    """Return texts under keys such as `a[b][0]` as a tree."""
    tree: Any = {}
    for key, text in flat.items():
        node, tokens = tree, re.findall(r"\[([^\]]*)\]", key[len(wire) :])
        for token in tokens[:-1]:
            node = node.setdefault(token, {}) if isinstance(node, dict) else {}
        if not tokens or not isinstance(node, dict):
            return text
        node[tokens[-1] or str(len(node))] = text
    return tree


def _read_body(tool: ToolSpec, request: httpx.Request) -> JsonObject:
    content, parts, binding = request.read(), dict(_parts(tool, "body")), tool.binding or HttpBinding("post", "/")
    if not content and not request.headers.get("content-type", "").startswith(FORMS[1]):
        return {}
    sent = request.headers.get("content-type") or str(binding.body.get("media", JSON_MEDIA))
    kind, whole = sent.partition(";")[0].strip().lower(), parts.get("")
    if kind in FORMS and (whole is None or whole.is_only("object")):
        names = {key: whole.inner(key, field_style(binding, key)) for key in whole.names()} if whole else parts
        if kind != FORMS[0]:
            raise CannotRead("a multipart body")
        form = _read_pairs(_pairs(content.decode(errors="replace").split("&")), [*names.items()], unquote_plus, tool)
        return {whole.name: form} if whole else form
    value: Json = _load(content.decode(errors="replace")) if kind.endswith("json") else _as_text(content, kind)
    if whole is not None:
        return {whole.name: value}
    if not isinstance(value, dict):
        raise CannotRead("its body is no object")
    return {parts[wire].name if wire in parts else wire: each for wire, each in value.items()}


def _as_text(content: bytes, media: str) -> str:
    """Return bytes as text; those of a known media type, and those that are no text, as a `data:` address."""
    with suppress(UnicodeDecodeError):
        if media in ("", OCTETS) or media.startswith("text/"):
            return content.decode()
    return f"data:{media or OCTETS};base64,{base64.b64encode(content).decode()}"


def _load(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        raise CannotRead("its JSON is broken") from None
    return value
