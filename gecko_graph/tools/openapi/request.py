"""Build the HTTP request of an OpenAPI call: the location of each argument, and its serialization there.

- Path: values are percent-encoded completely and stay in their segment; a value that would make a segment empty, `.`
  or `..` is refused. Styles `simple`, `label`, `matrix`.
- Query and cookies: `form`, `spaceDelimited`, `pipeDelimited`, `deepObject` (lists in it by index); `allowReserved`
  keeps reserved characters, except those that would end the value (`&`, `#`, `+`). Null is not sent.
- Headers: `simple`; control characters are refused.
- Bodies: JSON, forms, multipart, text, or the raw body. A member with `format: binary` (or a content media type) is a
  file part: the bytes of a `data:...;base64,` address, else the text in UTF-8.
- Values that a style cannot nest (a list in a list, an object in a form) are written as JSON; values that could not be
  split again (a header's list whose items contain commas) are refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

import httpx

from ...schemas.reading import Said
from ...state import Json, JsonObject
from ..spec import VARIABLE, HttpBinding, ToolSpec

PATH_STYLES = {"simple": ("", ",", False), "label": (".", ".", False), "matrix": (";", ";", True)}
"""Prefix, separator of exploded values, and whether each value repeats the name (RFC 6570)."""

STYLES = {
    "path": [*PATH_STYLES],
    "query": ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
    "header": ["simple"],
    "cookie": ["form"],
}
"""The styles of each location, the default first."""

SEQUENCES = tuple(f"application/{name}" for name in ("jsonl", "x-ndjson", "ndjson", "json-lines", "json-seq"))
"""Media types of a sequence of JSON values; the value is a list here."""

DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
JSON_MEDIA = "application/json"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")

_RESERVED = ":/?[]@!$'()*,;"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")
CLIENT_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=_-]*)")
OCTETS = "application/octet-stream"

_File = tuple[str, tuple[str | None, bytes, str]]


class CannotSend(ValueError):
    """A call that no request can carry. Nothing was sent."""


def build_request(tool: ToolSpec, base: str, args: Mapping[str, Any], *, extra: Mapping[str, str]) -> httpx.Request:
    """Return the request of a call, without credentials.

    Args:
        tool: The tool, with its binding.
        base: The server's address; its path is kept.
        args: The call's arguments.
        extra: Further headers.

    Raises:
        CannotSend: An argument is missing or cannot be written in its location.
    """
    binding = tool.binding or HttpBinding("post", "/")
    path, _, fixed = binding.path.partition("#")[0].partition("?")
    values = {name: (*binding.places.get(name, ("body", name)), value) for name, value in args.items()}
    variables = {wire: (name, value) for name, (place, wire, value) in values.items() if place == "path"}
    url = base.rstrip("/") + _expand_path(path, variables, binding)
    query = [_expand(fixed, variables, binding)] if fixed else []
    headers = {"accept": f"{JSON_MEDIA}, */*;q=0.5", "accept-encoding": "identity", **extra}
    cookies: list[str] = []
    members: JsonObject = {}
    taken = {
        place: {wire for other, wire in binding.places.values() if other == place} for place in ("query", "cookie")
    }
    for name, (place, wire, value) in values.items():
        style = binding.styles.get(name, {})
        if place == "body":
            members[wire] = value
        elif place == "header" and wire.lower() in CLIENT_HEADERS:
            raise CannotSend(f"the header {wire!r} is set by the client")
        elif value is not None and place == "header":
            headers[wire.lower()] = _format_simple(wire.lower(), value, style, format_scalar)
        elif value is not None and place in ("query", "cookie"):
            _check_members(name, value, style, taken[place])
            pairs = [f"{key}={text}" for key, text in format_pairs(wire, value, style)]
            (query if place == "query" else cookies).extend(pairs)
        elif value is not None and place == "querystring":
            query.append(_format_querystring(value, style))
    headers |= {"cookie": "; ".join(cookies)} if cookies else {}
    body = _body(tool, binding, members)
    headers |= {"content-type": body.pop("media")} if "media" in body else {}
    coded = [(name.encode(), _check_header(name, value).encode()) for name, value in headers.items()]
    url += f"?{'&'.join(query)}" if query else ""
    try:
        return httpx.Request(binding.method.upper(), url, headers=coded, **body)
    except httpx.InvalidURL as error:
        raise CannotSend(f"the address cannot be used: {error}") from None


def _expand_path(path: str, variables: Mapping[str, tuple[str, Any]], binding: HttpBinding) -> str:
    segments = [_expand(segment, variables, binding) for segment in path.split("/")]
    for template, segment in zip(path.split("/"), segments, strict=True):
        if template != segment and unquote(segment) in ("", ".", ".."):
            name = next(variables[wire][0] for wire in VARIABLE.findall(template))
            raise CannotSend(f"the argument {name!r} must not be empty, '.' or '..': it would lead to another path")
    return "/".join(segments)


def _expand(template: str, variables: Mapping[str, tuple[str, Any]], binding: HttpBinding) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise CannotSend(f"the argument for {match[1]!r} in the path is missing")
        name, value = variables[match[1]]
        if value in (None, "", [], {}):
            raise CannotSend(f"the argument {name!r} must not be empty: it would lead to another path")
        return _format_simple(match[1], value, binding.styles.get(name, {}))

    return VARIABLE.sub(fill, template)


def format_scalar(value: Json) -> str:
    """Return a value as a parameter's text: text verbatim, floats like 1.0 as integers, others as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote(value: Json, safe: str = "") -> str:
    return quote(format_scalar(value).encode(), safe=safe)


def _format_simple(name: str, value: Json, style: JsonObject, coder: Any = _quote) -> str:
    if "content" in style:
        return str(coder(_format_content(value, style)))
    first, separator, named = PATH_STYLES.get(str(style.get("style")), PATH_STYLES["simple"])
    explode = style.get("explode", False)
    if isinstance(value, dict):
        pairs = [(coder(key), coder(member)) for key, member in value.items()]
        texts = [f"{key}={text}" for key, text in pairs] if explode else [*chain.from_iterable(pairs)]
        named = named and not explode
    else:
        texts = [coder(one) for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, dict | list):
        joined = _join(name, texts, separator if explode else ",", trims=coder is format_scalar)
    else:
        joined = texts[0]
    parts = texts if explode else [joined]
    return first + separator.join(f"{_quote(name)}={part}" if named else part for part in parts)


def _join(name: str, texts: list[str], separator: str, *, trims: bool = False) -> str:
    """Return texts joined, if they can be split again; a reader that `trims` strips spaces. Raises CannotSend."""
    joined = separator.join(texts)
    if texts and joined.split(separator) != texts:
        raise CannotSend(f"{name!r}: a value holds {unquote(separator)!r}, which separates the values in its style")
    if trims and (texts == [""] or any(text != text.strip(" \t") for text in texts)):
        raise CannotSend(f"{name!r}: a value in a list of a header must not be empty, nor begin or end in a space")
    return joined


def _check_members(name: str, value: Json, style: JsonObject, taken: set[str]) -> None:
    """Raise CannotSend if a member of an exploded object would be read as another parameter."""
    kind = style.get("style", "form")
    is_apart = style.get("explode", kind == "form") and kind != "deepObject" and "content" not in style
    if isinstance(value, dict) and is_apart:
        if clash := value.keys() & taken:
            raise CannotSend(f"{name!r}: its member {min(clash)!r} would be read as another parameter")
        taken |= value.keys()


def format_pairs(name: str, value: Json, style: JsonObject) -> list[tuple[str, str]]:
    """Return the encoded names and values of a query parameter, cookie or form field."""
    kind, safe = str(style.get("style", "form")), _RESERVED if style.get("allowReserved") else ""
    key = _quote(name)
    if "content" in style:
        return [(key, _quote(_format_content(value, style), safe))]
    if kind == "deepObject":
        return [(_quote(path), _quote(leaf, safe)) for path, leaf in _leaves(name, value)]
    explode = style.get("explode", kind == "form")
    if isinstance(value, dict):
        pairs = [(_quote(one), _quote(member, safe)) for one, member in value.items() if member is not None]
        if explode:
            return pairs
        texts = list(chain.from_iterable(pairs))
    else:
        safe = safe if explode else safe.replace(",", "")
        texts = [_quote(one, safe) for one in (value if isinstance(value, list) else [value])]
        if explode:
            return [(key, text) for text in texts]
    return [(key, _join(name, texts, DELIMITERS.get(kind, ",")))] if texts else []


def _format_querystring(value: Json, style: JsonObject) -> str:
    """Return the value as a whole query string: a form, or one text of its media type."""
    if style.get("content") == FORMS[0] and isinstance(value, dict):
        return "&".join(f"{key}={text}" for name, one in value.items() for key, text in format_pairs(name, one, {}))
    return _quote(_format_content(value, style))


def _format_content(value: Json, style: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False) if "json" in str(style["content"]) else format_scalar(value)


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    if not isinstance(value, dict | list):
        yield from [] if value is None else [(path, value)]
        return
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        if not str(key) or {*"[]"} & {*str(key)}:
            raise CannotSend(f"{path!r}: the name {key!r} of a member cannot be written in brackets")
        yield from _leaves(f"{path}[{key}]", member)


def _check_header(name: str, value: str) -> str:
    if _CONTROL.search(value):
        raise CannotSend(f"the header {name!r} must not contain line breaks or control characters, nor end in a space")
    return value


def _body(tool: ToolSpec, binding: HttpBinding, members: JsonObject) -> dict[str, Any]:
    """Return httpx's arguments for the body, and its `media` type."""
    if not members and not binding.body.get("required"):
        return {}
    media = str(binding.body.get("media", JSON_MEDIA))
    kind = media.partition(";")[0].strip().lower()
    value = members.get("", members)
    if kind == "multipart/form-data" and isinstance(value, dict):
        return {"files": [part for name, one in value.items() for part in _parts(tool, binding, name, one)]}
    if kind == "application/x-www-form-urlencoded" and isinstance(value, dict):
        taken, styles = {*value}, {name: field_style(binding, name, one) for name, one in value.items()}
        for name, one in value.items():
            _check_members(name, one, styles[name], taken)
        pairs = [pair for name, one in value.items() for pair in format_pairs(name, one, styles[name])]
        return {"content": "&".join(f"{key}={text}" for key, text in pairs).encode(), "media": media}
    if kind in SEQUENCES:
        begin = "\x1e" if kind.endswith("seq") else ""
        rows = (json.dumps(one, ensure_ascii=False) for one in (value if isinstance(value, list) else [value]))
        return {"content": "".join(f"{begin}{row}\n" for row in rows).encode(), "media": media}
    if kind == JSON_MEDIA or kind.endswith("+json") or ("*" in kind and not isinstance(value, str)):
        coded = json.dumps(value, ensure_ascii=False).encode()
        return {"content": coded, "media": JSON_MEDIA if "*" in kind else media}
    if isinstance(value, dict | list) and not is_text(kind):
        raise CannotSend(f"a body of type {media} must be text, not an object or a list")
    return {"content": _octets(value)[0], "media": OCTETS if "*" in kind else media}


def is_text(kind: str) -> bool:
    """Return whether a media type carries any JSON value as text."""
    return kind.startswith("text/") and "xml" not in kind


def field_style(binding: HttpBinding, name: str, value: Json = None) -> JsonObject:
    encoding = binding.body.get("encoding")
    given = encoding.get(name) if isinstance(encoding, dict) else None
    rule: JsonObject = given if isinstance(given, dict) else {}
    has_style = rule.keys() & {"style", "explode", "allowReserved"}
    is_json = isinstance(value, dict) or "json" in str(rule.get("contentType"))
    return {"content": JSON_MEDIA} if is_json and not has_style else rule


def _octets(value: Json) -> tuple[bytes, str | None]:
    """Return a file's bytes, and the media type that its `data:` address names."""
    found = _DATA_URL.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return format_scalar(value).encode(), None
    try:
        return base64.b64decode(found[2].replace("-", "+").replace("_", "/"), validate=True), found[1]
    except binascii.Error:
        raise CannotSend("a data: address does not contain base64") from None


def _parts(tool: ToolSpec, binding: HttpBinding, name: str, value: Json) -> Iterator[_File]:
    named = {wire: argument for argument, (place, wire) in binding.places.items() if place == "body"}
    schema = tool.parameters.get("properties", {}).get(named.get(name, name), {})
    given = binding.body.get("encoding", {}).get(name, {}).get("contentType", "").partition(",")[0].strip()
    said = Said(schema, tool.parameters)
    is_file = any(map(_is_file, (*said.parts(), *said.member(None).parts())))
    for one in value if isinstance(value, list) else [value]:
        content, media = _octets(one) if is_file else (format_scalar(one).encode(), None)
        default = OCTETS if is_file else JSON_MEDIA if isinstance(one, dict | list) else "text/plain; charset=utf-8"
        kind = _check_header("content-type", given if given and "*" not in given else media or default)
        yield name, (name if is_file else None, content, kind)


def _is_file(schema: JsonObject) -> bool:
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)
