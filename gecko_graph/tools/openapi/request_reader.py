"""Read HTTP requests as calls of OpenAPI operations: the inverse of `request`, for every lossless style.

Texts get their types from the operation's schemas. If a style writes two values alike (an empty list and no list), the
simpler one is read. A request with an undeclared parameter is not read, since a rule learned without the parameter
could be wrong.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from email import message_from_bytes
from email.policy import HTTP
from email.utils import collapse_rfc2231_value
from functools import lru_cache
from urllib.parse import urlsplit

import httpx

from ...schemas.reading import Said
from ...state import Json, JsonObject
from ..spec import VARIABLE, HttpBinding, ToolSpec
from .credentials import Server, resolve_server
from .fields import (
    CannotRead,
    Decode,
    Field,
    Pairs,
    as_it_is,
    decode_path,
    decode_query,
    fields_of,
    load_json,
    read_pairs,
)
from .request import FORMS, JSON_MEDIA, OCTETS, SEQUENCES, field_style, is_text

__all__ = ["CannotRead", "Operations", "pattern_of", "read_cookies", "read_request"]


class Operations:
    """The operations of a toolkit, found by method and address.

    Args:
        tools: The tools; those without an operation are never found.
        server: As for `Toolkit.from_openapi`; by default a document's own server, or, if that has no host, its path on
            any host.
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
            except CannotRead as error:  # several operations may share a path, with different queries
                why = str(error)
        raise CannotRead(why)


def read_request(tool: ToolSpec, base: str, request: httpx.Request, *, unnamed: list[str] | None = None) -> JsonObject:
    """Return the arguments from which `build_request` makes this request; of `base` only the path is compared.

    Undeclared members of an open body are returned among the arguments, or, if `unnamed` is a list, their names are
    added to it.

    Raises:
        CannotRead: It is not a request of this operation. `is_media` is True if its media type is unsupported.
    """
    try:
        return _read_request(tool, base, request, unnamed)
    except UnicodeError:
        raise CannotRead("it contains bytes that are not UTF-8") from None


def _read_request(tool: ToolSpec, base: str, request: httpx.Request, unnamed: list[str] | None) -> JsonObject:
    binding = tool.binding or HttpBinding("post", "/")
    path, _, query = request.url.raw_path.decode().partition("?")
    template, _, fixed = binding.path.partition("#")[0].partition("?")
    found, queries = pattern_of(urlsplit(base).path.rstrip("/") + template).fullmatch(path), query.split("&")
    variables: dict[str, str] = {}
    for one in (template, *filter(None, fixed.split("&"))):
        found = found if one is template else next(filter(None, map(pattern_of(one, ".").fullmatch, queries)), None)
        if found is None or request.method != binding.method.upper():
            raise CannotRead("no operation has its path")
        queries = queries if one is template else [each for each in queries if each != found[0]]
        variables |= dict(zip(VARIABLE.findall(one), found.groups(), strict=True))
    args = {each.name: each.read(variables[wire]) for wire, each in fields_of(tool, "path") if wire in variables}
    if whole := fields_of(tool, "querystring"):
        sent = "&".join(filter(None, queries))
        args |= {each.name: each.read_query(sent) for _, each in whole if sent}
    else:
        named, left = read_pairs(_pairs(queries), fields_of(tool, "query"), decode_query, tool) if query else ({}, {})
        if left:
            raise CannotRead(f"a parameter that {tool.name} does not have: {min(left)}"[:120])
        args |= named
    args |= _read_headers(tool, request)
    args |= read_pairs(_pairs(read_cookies(request)), fields_of(tool, "cookie"), decode_path)[0]
    body, others = _read_body(tool, request)
    if unnamed is not None and not (tool.binding and tool.binding.body.get("closed")):
        unnamed += others
        others = {}
    if both := others.keys() & tool.parameters.get("properties", {}).keys():
        raise CannotRead(f"a member of the body that {tool.name} does not have: {min(both)}"[:120])
    return args | body | others


def read_cookies(request: httpx.Request) -> list[str]:
    """Return a request's cookies as `name=value`."""
    return [one for one in re.split(r";\s*", request.headers.get("cookie", "")) if one]


@lru_cache(maxsize=4096)
def pattern_of(template: str, one: str = "[^/]") -> re.Pattern[str]:
    """Return the pattern of a path template; each variable is a group of characters of the class `one`."""
    texts = ["".join(map(_either, text)) for text in VARIABLE.split(template)[::2]]  # the other parts are names
    return re.compile(f"({one}+?)".join(texts))


def _either(character: str) -> str:
    """Return the pattern of a character in an address, literal or percent-encoded."""
    coded = "".join(f"%{byte:02x}" for byte in character.encode())
    return character if character == "/" or character.isalnum() else f"(?:{re.escape(character)}|(?i:{coded}))"


def _read_headers(tool: ToolSpec, request: httpx.Request) -> JsonObject:
    found: JsonObject = {}
    for wire, one in fields_of(tool, "header"):
        given = request.headers.get_list(wire)
        if len(given) > 1 and one.kinds and not one.kinds & {"array", "object"}:
            raise CannotRead(f"the header {wire} is there twice"[:120])
        found |= {one.name: one.read(", ".join(given), str)} if given else {}
    return found


def _pairs(texts: Iterable[str]) -> Pairs:
    return [(key, value) for key, _, value in (one.partition("=") for one in texts if one)]


def _read_body(tool: ToolSpec, request: httpx.Request) -> tuple[JsonObject, JsonObject]:
    """Return the arguments of a body, and its undeclared members.

    If an optional body is not sent, its required arguments get their defaults.
    """
    content, parts, binding = request.read(), dict(fields_of(tool, "body")), tool.binding or HttpBinding("post", "/")
    media = request.headers.get("content-type") or str(binding.body.get("media", JSON_MEDIA))
    is_form = media.lower().startswith(FORMS[1])
    if is_form and "boundary=" not in media and (content or binding.body.get("media") != FORMS[1]):
        raise CannotRead("a multipart body without a boundary", is_media=True)
    if not content:
        if binding.body.get("required"):
            raise CannotRead("its body is missing")
        needed = tool.parameters.get("required", ()) if "required" in binding.body else ()
        found = {one.name: one.said.schema for one in parts.values() if one.name in needed}
        return {name: rule["default"] for name, rule in found.items() if "default" in rule}, {}
    value, whole = _decode(tool, content, media, parts), parts.get("")
    if whole is not None:
        return {whole.name: whole.fit(value)}, {}
    if not isinstance(value, dict):
        raise CannotRead("its body is not an object")
    own = {parts[wire].name: parts[wire].fit(each) for wire, each in value.items() if wire in parts}
    return own, {wire: each for wire, each in value.items() if wire not in parts}


def _decode(tool: ToolSpec, content: bytes, media: str, parts: Mapping[str, Field]) -> Json:
    kind, whole = media.partition(";")[0].strip().lower(), parts.get("")
    if kind in FORMS and (whole is None or whole.is_only("object")):
        return _read_form(tool, content, media, parts)
    if kind in SEQUENCES:
        rows = [load_json(line) for line in re.split("[\n\x1e]", _text(content, media)) if line.strip()]
        return rows if len(rows) != 1 or (whole is not None and not whole.is_only("object")) else rows[0]
    as_json = is_text(kind) and (whole is None or whole.is_only("object") or whole.is_only("array"))
    if kind.endswith("json") or as_json:
        return load_json(_text(content, media))
    if whole is None:
        raise CannotRead(f"a body of {kind}"[:120], is_media=True)
    is_file = any("format" in one for one in whole.said.parts())
    return _as_text(content, kind if is_file else "")


def _read_form(tool: ToolSpec, content: bytes, media: str, parts: Mapping[str, Field]) -> JsonObject:
    """Return a form's fields by their names on the wire; undeclared ones as texts."""
    binding, whole = tool.binding or HttpBinding("post", "/"), parts.get("")
    names = {key: whole.inner(key, field_style(binding, key)) for key in whole.said.names()} if whole else {**parts}
    names = {key: replace(one, name=key) for key, one in names.items()}
    if media.lower().startswith(FORMS[1]):
        names = {key: replace(one, style={}) for key, one in names.items()}
        found, left = read_pairs(_read_parts(content, media), [*names.items()], as_it_is)
        decode: Decode = as_it_is
    else:
        decode = decode_query
        found, left = read_pairs(_pairs(_text(content, media).split("&")), [*names.items()], decode)
    more = {key: whole.inner(key) if whole else Field(Said({}, {}), key, {}) for key in left}
    return found | {key: one.listed([*map(decode, left[key])]) for key, one in more.items()}


def _read_parts(content: bytes, media: str) -> list[tuple[str, Json]]:
    """Return names and values of a multipart form; a file becomes text or a `data:` address, as in `build_request`."""
    message = message_from_bytes(f"content-type: {media}\r\n\r\n".encode() + content, policy=HTTP)
    found = list[tuple[str, Json]]()
    for each in message.iter_parts() if message.is_multipart() else ():
        name = each.get_param("name", header="content-disposition")
        if name is None:
            raise CannotRead("its multipart body is broken")
        payload, kind = bytes(each.get_payload(decode=True) or b""), each.get_content_type()
        if each.get_filename() is not None:
            value: Json = _as_text(payload, kind)
        else:
            text = _text(payload, str(each.get("content-type", "")))
            value = load_json(text) if kind.endswith("json") else text
        found.append((collapse_rfc2231_value(name), value))
    if not found and not content.rstrip().endswith(b"--"):  # the end of a form, even of an empty one
        raise CannotRead("its multipart body is broken")
    return found


def _text(content: bytes, media: str) -> str:
    """Decode bytes in the charset of a media type. Raises UnicodeError."""
    named = re.search(r"(?i)charset=\"?([\w.:-]+)", media)
    try:
        return content.decode(named[1] if named and named[1].lower() not in ("utf-8", "utf8") else "utf-8-sig")
    except LookupError:
        raise CannotRead("a body in an unknown charset", is_media=True) from None


def _as_text(content: bytes, media: str) -> str:
    """Return bytes as text, or as a `data:` address if they are not text or have another media type."""
    with suppress(UnicodeDecodeError):
        if media in ("", OCTETS) or media.startswith("text/"):
            return content.decode()
    return f"data:{media or OCTETS};base64,{base64.b64encode(content).decode()}"
