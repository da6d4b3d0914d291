"""A request as a call of an OpenAPI operation: the inverse of `request`, for every style that keeps the values.

Texts get their types from the operation's schemas. What a style writes alike for two values (an empty list and no list)
is read as the simpler one. A parameter that the operation does not have is a reason not to read the request: a rule
that was learned without it could be wrong.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from email import message_from_bytes
from email.policy import HTTP
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_plus, urlsplit

import httpx

from ...schemas.reading import Said
from ...state import Json, JsonObject
from ..spec import HttpBinding, ToolSpec
from .credentials import Server, resolve_server
from .request import DELIMITERS, FORMS, JSON_MEDIA, OCTETS, PATH_STYLES, SEQUENCES, VARIABLE, field_style, format_scalar

_SPLIT = {"%20": r"%20|\+", "%7C": r"%7[Cc]|\|"}
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
Pairs = list[tuple[str, str]]
Decode = Callable[[str], str]


class CannotRead(ValueError):
    """A request that is no call of an operation; the message is the cause, and holds no value."""

    def __init__(self, why: str, *, is_media: bool = False) -> None:
        super().__init__(why)
        self.is_media = is_media


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


def read_request(tool: ToolSpec, base: str, request: httpx.Request, *, unnamed: list[str] | None = None) -> JsonObject:
    """Return the arguments that `build_request` makes a request of; of `base` only the path counts.

    Members that an open body may have, and the tool does not, stand among the arguments; given a list, their names are
    added to it instead.

    Raises:
        CannotRead: It is no request of this operation. Its `is_media` is True where the body's media type is not read.
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
    if whole := _parts(tool, "querystring"):
        args |= {each.name: each.read_query("&".join(texts)) for _, each in whole if texts}
    else:
        args |= _read_pairs(_pairs(texts), _parts(tool, "query"), unquote_plus, tool)
    sent = request.headers
    args |= {each.name: each.read(sent[wire], str) for wire, each in _parts(tool, "header") if wire in sent}
    args |= _read_pairs(_pairs(read_cookies(request)), _parts(tool, "cookie"), unquote)
    body, others = _read_body(tool, request)
    if unnamed is not None and not (tool.binding and tool.binding.body.get("closed")):
        unnamed += others
        others = {}
    if both := others.keys() & tool.parameters.get("properties", {}).keys():
        raise CannotRead(f"a member of the body that {tool.name} does not have: {min(both)}"[:120])
    return args | body | others


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

    def made_of(self) -> list[JsonObject]:
        """Return the schema and those that apply to the same value."""
        return Said(self.schema, self.root).parts()

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
        return Said(self.schema, self.root).names()

    def inner(self, key: str | None, style: JsonObject | None = None) -> _Part:
        """Return the schema of a member, of an item for None."""
        return _Part(Said(self.schema, self.root).member(key).schema, self.root, key or "", style or {})

    def scalar(self, text: str) -> Json:
        """Return the value that a text stands for."""
        kinds = self.kinds
        with suppress(ValueError, RecursionError):
            value: Json = json.loads(text, parse_int=_as_number) if kinds - {"string"} else text
            is_kind = _TYPES.get(type(value), "null") in kinds or (type(value) is float and value.is_integer())
            if is_kind and not isinstance(value, str) and ("string" not in kinds or format_scalar(value) == text):
                return self.fit(value)
        return text

    def fit(self, value: Json) -> Json:
        """Return a value of a body, its whole numbers without a fraction where only an integer may stand."""
        if isinstance(value, dict):
            return {key: self.inner(key).fit(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.inner(None).fit(each) for each in value]
        if type(value) is not float or not value.is_integer():
            return value
        has_bits = any(str(one.get("format")) in ("int32", "int64") for one in self.made_of())
        is_kept = (abs(value) < 1 << 63 or has_bits) and "integer" in self.kinds and "number" not in self.kinds
        return int(value) if is_kept else value  # more than its bits: for the validator to refuse

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
            return load_json(decode(raw)) if "json" in str(self.style["content"]) else self.scalar(decode(raw))
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

    def read_query(self, raw: str) -> Json:
        """Return the value that a whole query stands for."""
        if self.style.get("content") != FORMS[0]:
            return self.read(raw)
        pairs = _pairs(raw.split("&"))
        names = dict.fromkeys([*self.names(), *(unquote_plus(key) for key, _ in pairs)])
        return _read_pairs(pairs, [(key, self.inner(key)) for key in names], unquote_plus)

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
    options = closed.binding.security if closed and closed.binding else ()
    for credential in {str(each.get("name")) for option in options for each in option.values()}:
        named.pop(credential, None)
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
    if closed and named:
        raise CannotRead(f"a parameter that {closed.name} does not have: {min(named)}"[:120])
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


def _read_body(tool: ToolSpec, request: httpx.Request) -> tuple[JsonObject, JsonObject]:
    """Return the arguments of a body, and its members that are none.

    Where no body is sent, nor demanded, what its schema requires has its defaults.
    """
    content, parts, binding = request.read(), dict(_parts(tool, "body")), tool.binding or HttpBinding("post", "/")
    media = request.headers.get("content-type") or str(binding.body.get("media", JSON_MEDIA))
    is_form = media.lower().startswith(FORMS[1])
    if is_form and "boundary=" not in media and (content or binding.body.get("media") != FORMS[1]):
        raise CannotRead("a multipart body without a boundary", is_media=True)
    if not content:
        if binding.body.get("required"):
            raise CannotRead("its body is missing")
        needed = tool.parameters.get("required", ()) if "required" in binding.body else ()
        found = {one.name: one.schema for one in parts.values() if one.name in needed}
        return {name: rule["default"] for name, rule in found.items() if "default" in rule}, {}
    value, whole = _decode(tool, content, media, parts), parts.get("")
    if whole is not None:
        return {whole.name: whole.fit(value)}, {}
    if not isinstance(value, dict):
        raise CannotRead("its body is no object")
    own = {parts[wire].name: parts[wire].fit(each) for wire, each in value.items() if wire in parts}
    return own, {wire: each for wire, each in value.items() if wire not in parts}


def _decode(tool: ToolSpec, content: bytes, media: str, parts: Mapping[str, _Part]) -> Json:
    kind, whole = media.partition(";")[0].strip().lower(), parts.get("")
    if kind in FORMS and (whole is None or whole.is_only("object")):
        return _read_form(tool, content, media, parts)
    if kind in SEQUENCES:
        return [load_json(one) for one in re.split("[\n\x1e]", content.decode(errors="replace")) if one.strip()]
    if kind.endswith("json"):
        return load_json(content.decode(errors="replace"))
    if whole is None:
        raise CannotRead(f"a body of {kind}"[:120], is_media=True)
    return _as_text(content, kind)


def _read_form(tool: ToolSpec, content: bytes, media: str, parts: Mapping[str, _Part]) -> JsonObject:
    """Return a form's fields by their names on the wire, those that the tool does not have as texts."""
    binding, whole = tool.binding or HttpBinding("post", "/"), parts.get("")
    if media.lower().startswith(FORMS[1]):
        return _read_multipart(content, media, whole, parts)
    pairs = _pairs(content.decode(errors="replace").split("&"))
    names = {key: whole.inner(key, field_style(binding, key)) for key in whole.names()} if whole else {**parts}
    names = {key: one._replace(name=key) for key, one in names.items()}
    for key in {unquote_plus(key) for key, _ in pairs}:
        if not any(key == name or key.startswith(f"{name}[") for name in names):
            names[key] = whole.inner(key) if whole else _Part({}, {}, key, {})
    return _read_pairs(pairs, [*names.items()], unquote_plus)


def _read_multipart(content: bytes, media: str, whole: _Part | None, parts: Mapping[str, _Part]) -> JsonObject:
    """Return the parts of a multipart form; a file is a text or a `data:` address, as `build_request` takes it."""
    message = message_from_bytes(f"content-type: {media}\r\n\r\n".encode() + content, policy=HTTP)
    found: JsonObject = {}
    lists = dict[str, list[Json]]()
    for each in message.iter_parts() if message.is_multipart() else ():
        name = each.get_param("name", header="content-disposition")
        if not isinstance(name, str):
            raise CannotRead("its multipart body is broken")
        payload, kind = bytes(each.get_payload(decode=True) or b""), each.get_content_type()
        one = (whole.inner(name) if whole else parts.get(name)) or _Part({}, {}, name, {})
        if each.get_filename() is not None:
            value: Json = _as_text(payload, kind)
        elif kind.endswith("json"):
            value = load_json(payload.decode(errors="replace"))
        else:
            value = (one.inner(None) if one.is_only("array") else one).scalar(payload.decode(errors="replace"))
        lists.setdefault(name, []).append(value)
        found[name] = (
            lists[name] if len(lists[name]) > 1 or (one.is_only("array") and type(value) is not list) else value
        )
    if not found and not content.rstrip().endswith(b"--"):  # which ends one, also of no parts
        raise CannotRead("its multipart body is broken")
    return found


def _as_text(content: bytes, media: str) -> str:
    """Return bytes as text; those of a known media type, and those that are no text, as a `data:` address."""
    with suppress(UnicodeDecodeError):
        if media in ("", OCTETS) or media.startswith("text/"):
            return content.decode()
    return f"data:{media or OCTETS};base64,{base64.b64encode(content).decode()}"


def load_json(text: str) -> Json:
    """Return what JSON says; a whole number beyond 64 bits as the nearest one that JSON's readers keep."""
    try:
        value: Json = json.loads(text, parse_int=_as_number)
    except (ValueError, RecursionError):
        raise CannotRead("its JSON is broken") from None
    return value


def _as_number(digits: str) -> int | float:
    number = float(digits)
    is_beyond = math.isfinite(number) and not -(1 << 63) <= number < 1 << 64
    return number if is_beyond else int(digits)
