"""Read the named values of a request by their schemas: the inverse of `request`'s styles, and of other clients'.

Other clients write a list under a repeated name, under `name[]` or `name[0]`, as a comma-separated list (unless its
items are texts with commas), or as JSON; an object under `name[key]`, `name.key` or as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from urllib.parse import unquote, unquote_plus

from ...schemas.complaints import find_faults
from ...schemas.reading import Said
from ...state import Json, JsonObject
from ...values.identity import cache_by_identity
from ..spec import HttpBinding, ToolSpec
from .request import DELIMITERS, FORMS, JSON_MEDIA, PATH_STYLES, SEQUENCES, field_style, format_scalar, is_text

_TOKEN = re.compile(r"\[([^\[\]]*)\]|\.([^.\[\]]+)")
MAX_LEVELS = 64
_SPLIT = {"%20": r"%20|\+", "%7C": r"%7[Cc]|\|"}
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
Pairs = list[tuple[str, str]]
Decode = Callable[[Any], Any]

decode_path: Decode = partial(unquote, errors="strict")
decode_query: Decode = partial(unquote_plus, errors="strict")
_BOOLEANS = {**dict.fromkeys(("true", "1", "yes", "on"), True), **dict.fromkeys(("false", "0", "no", "off"), False)}
"""How clients write booleans: Python's `True`, PHP's 1, a form's `on`."""


def as_it_is(value: Any) -> Any:
    """Return the value: a decoder for values that are already decoded."""
    return value


class CannotRead(ValueError):
    """A request that is not a call of an operation; the message gives the reason without any value."""

    def __init__(self, why: str, *, is_media: bool = False) -> None:
        super().__init__(why)
        self.is_media = is_media


@dataclass(slots=True)
class SpelledNode:
    """The content under one key: texts, members by name, or unnumbered items."""

    texts: list[str] = field(default_factory=list)
    members: dict[str, SpelledNode] = field(default_factory=dict)
    items: list[SpelledNode] = field(default_factory=list)

    @classmethod
    def of(cls, stem: str, named: Iterable[tuple[str, Sequence[str]]]) -> SpelledNode:
        """Return the content of all keys that begin with a stem. Raises CannotRead."""
        root = cls()
        for key, texts in named:
            tokens = tokens_of(key, stem)
            for text in texts if tokens is not None else ():
                root._add(tokens or [], text)
        return root

    def _add(self, tokens: list[str], text: str) -> None:
        path = [self]
        for at, token in enumerate(tokens, 1):
            node = path[-1]
            # as Rails reads it: a repeated member begins the next item
            if not token and (not node.items or at == len(tokens) or node.items[-1]._has(tokens[at:])):
                node.items.append(SpelledNode())
            path.append(node.members.setdefault(token, SpelledNode()) if token else node.items[-1])
        path[-1].texts.append(text)
        if len(tokens) > MAX_LEVELS or any(sum(map(bool, (one.texts, one.members, one.items))) > 1 for one in path):
            raise CannotRead("a parameter or field is written in two ways, or has too many levels")

    def _has(self, tokens: Sequence[str]) -> bool:
        node: SpelledNode | None = self
        for token in tokens:
            node = node.members.get(token) if node else None
        return node is not None


def tokens_of(key: str, stem: str) -> list[str] | None:
    rest = key[len(stem) :]
    found = [*_TOKEN.finditer(rest)]
    if not key.startswith(stem) or "".join(each[0] for each in found) != rest:
        return None
    return [each[1] if each[2] is None else each[2] for each in found]


@dataclass(frozen=True)
class Field:
    """A schema inside a tool's parameters, which contain its definitions; of an argument also name and style."""

    said: Said
    name: str
    style: JsonObject

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The types that a value may have; empty if the schema does not restrict them."""
        found = set[str]()
        for one in self.said.parts():
            listed = [*one.get("enum", ()), *([one["const"]] if "const" in one else [])]
            given = one.get("type") or [_TYPES.get(type(value), "null") for value in listed]
            found |= {given} if isinstance(given, str) else {*given}
            found |= {kind for key, kind in (("properties", "object"), ("items", "array")) if key in one}
        return frozenset(found | ({"integer"} if "number" in found else set()))

    def is_only(self, kind: str) -> bool:
        """Return whether every value is of this kind (`array` or `object`)."""
        return kind in self.kinds and not self.kinds & (_SCALARS | ({"array", "object"} - {kind}))

    def inner(self, key: str | None, style: JsonObject | None = None) -> Field:
        """Return the field of a member, or of a list's item if the key is None."""
        return Field(self.said.member(key), key or "", style or {})

    def scalar(self, text: Json) -> Json:
        """Return the value that a text encodes; any other value is fitted to the schema."""
        if not isinstance(text, str):
            return self.fit(text)
        kinds = self.kinds
        if "boolean" in kinds and not kinds & {"string", "number", "integer"} and text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        with suppress(ValueError, RecursionError):
            value: Json = json.loads(text, parse_int=_as_number) if kinds - {"string"} else text
            is_kind = _TYPES.get(type(value), "null") in kinds or (type(value) is float and value.is_integer())
            is_text = "string" in kinds and (value is None or format_scalar(value) != text)
            if is_kind and not isinstance(value, str) and not is_text:
                return self.fit(value)
        return text

    def fit(self, value: Json) -> Json:
        """Return a JSON value with floats like 1.0 as integers, if the schema allows only integers."""
        if isinstance(value, dict):
            return {key: self.inner(key).fit(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.inner(None).fit(each) for each in value]
        if type(value) is not float or not value.is_integer():
            return value
        has_bits = any(str(one.get("format")) in ("int32", "int64") for one in self.said.parts())
        is_kept = (abs(value) < 1 << 63 or has_bits) and "integer" in self.kinds and "number" not in self.kinds
        return int(value) if is_kept else value  # out of its range: the validator rejects it

    def listed(self, texts: list[Any]) -> Json:
        """Return texts as a list; a single text as a scalar unless the schema requires a list."""
        if len(texts) == 1 and (isinstance(texts[0], list) or not self.is_only("array")):
            return self.scalar(texts[0])
        return [self.inner(None).scalar(each) for each in texts]

    def fits(self, value: Json) -> bool:
        schema, defs = self.said.schema, self.said.root.get("$defs", {})
        return not isinstance(schema, dict) or not find_faults({**schema, "$defs": defs}, value)

    def read_all(self, raws: list[Any], decode: Decode) -> Json:
        """Return the value of all texts under one name, in the declared style or other clients' notations."""
        texts = [decode(raw) for raw in raws]
        text = texts[0] if len(texts) == 1 and isinstance(texts[0], str) else ""
        if text[:1] == "{" and self.is_only("object") and "content" not in self.style:
            with suppress(CannotRead):
                return self.fit(load_json(text))
        found = [self.listed(texts) if self.explodes else _join([self.read(raw, decode) for raw in raws])]
        if ("," in text or text[:1] == "[") and "array" in self.kinds and not self.fits(found[0]):
            found += [self.listed([part.strip() for part in text.split(",")])]
            with suppress(CannotRead):
                found += [self.fit(load_json(text))] if text[:1] == "[" else []
        return next(filter(self.fits, found[1:]), found[0])

    def tree(self, node: SpelledNode, decode: Decode) -> Json:
        """Return the value of a name's texts and nested keys."""
        if node.texts:
            return self.read_all(node.texts, decode)
        if node.items:
            return [self.inner(None).tree(each, decode) for each in node.items]
        order = sorted(node.members, key=lambda key: (len(key), key))
        if order == [*map(str, range(len(order)))] and ("array" in self.kinds or not self.kinds):
            return [self.inner(None).tree(node.members[key], decode) for key in order]
        return {key: self.inner(key).tree(each, decode) for key, each in node.members.items()}

    def read(self, raw: str, decode: Decode | None = None) -> Json:
        """Return the value of one text: a path variable, a header, or a parameter in a non-exploding style."""
        decode = decode or decode_path
        if "content" in self.style:
            return load_json(decode(raw)) if "json" in str(self.style["content"]) else self.scalar(decode(raw))
        style, explode, kinds = str(self.style.get("style")), self.style.get("explode", False), self.kinds
        first, separator, named = PATH_STYLES.get(style, PATH_STYLES["simple"])
        separator = separator if explode else DELIMITERS.get(style, ",")
        if not raw.startswith(first) or (named and "=" not in raw):
            raise CannotRead(f"{self.name} is not written in the style {style}: it begins with {first}"[:120])
        raw = raw.removeprefix(first)
        raw = raw.partition("=")[2] if named and not explode else raw
        # an unrestricted schema: an unescaped separator splits the text; but in a header nothing is escaped
        may_split = kinds & {"array", "object"} or not (kinds or decode is str or self.style.get("allowReserved"))
        parts = re.split(_SPLIT.get(separator, re.escape(separator)), raw) if may_split else [raw]
        parts = [part.strip() for part in parts] if decode is str and may_split else parts
        if self.is_only("object"):
            texts = [decode(text) for part in parts for text in (part.split("=", 1) if explode else [part])]
            found = {key: self.inner(key).scalar(text) for key, text in zip(texts[::2], texts[1::2], strict=False)}
            if 2 * len(found) != len(texts) or (explode and len(found) != len(parts)):
                raise CannotRead(f"{self.name} is not written as names and values, each name once"[:120])
            return found
        texts = [decode(part.partition("=")[2] if named and explode else part) for part in parts]
        return [] if texts == [""] and decode is str and self.is_only("array") else self.listed(texts)

    def read_query(self, raw: str) -> Json:
        if self.style.get("content") != FORMS[0]:
            return self.read(raw)
        pairs: list[tuple[str, Any]] = [one.partition("=")[::2] for one in raw.split("&")]
        names = dict.fromkeys([*self.said.names(), *(decode_query(key) for key, _ in pairs)])
        return read_pairs(pairs, [(key, self.inner(key)) for key in names], decode_query)[0]

    @property
    def explodes(self) -> bool:
        """Whether each value of a query parameter repeats the name."""
        is_exploded = self.style.get("explode", self.style.get("style", "form") in ("form", "deepObject"))
        return bool(is_exploded) and "content" not in self.style


@cache_by_identity(4096)
def fields_of(tool: ToolSpec, place: str) -> list[tuple[str, Field]]:
    """Return the arguments that travel in a place, by their names there; not to be changed."""
    binding, found = tool.binding or HttpBinding("post", "/"), list[tuple[str, Field]]()
    for name, schema in tool.parameters.get("properties", {}).items():
        where, wire = binding.places.get(name, ("body", name))
        style = field_style(binding, wire) if place == "body" else binding.styles.get(name, {})
        found += [(wire, Field(Said(schema, tool.parameters), name, style))] if where == place else []
    return found


def find_unsendable(tool: ToolSpec) -> str:
    """Return the reason why no request can carry a tool's body, or ""."""
    body = tool.binding.body if tool.binding else {}
    media, fields = str(body.get("media", JSON_MEDIA)), fields_of(tool, "body")
    kind = media.partition(";")[0].strip().lower()
    if kind == JSON_MEDIA or kind.endswith("+json") or "*" in kind or kind in (*FORMS, *SEQUENCES) or is_text(kind):
        return ""
    held = any(wire or one.is_only("object") or one.is_only("array") for wire, one in fields)
    return f"its body can never be sent: {media} takes a text, not an object or a list" if held else ""


def read_pairs(
    pairs: Sequence[tuple[str, Any]], parts: list[tuple[str, Field]], decode: Decode, tool: ToolSpec | None = None
) -> tuple[JsonObject, dict[str, list[Any]]]:
    """Return arguments from names and values, and the unused values; a query's credentials of the tool are dropped."""
    named: dict[str, list[Any]] = {}
    for key, raw in pairs:
        named.setdefault(decode(key), []).append(raw)
    options = tool.binding.security if tool and tool.binding else ()
    for credential in {str(each.get("name")) for option in options for each in option.values()}:
        named.pop(credential, None)
    found, wires, exploded = JsonObject(), {wire for wire, _ in parts}, list[Field]()
    for wire, one in sorted(parts, key=lambda pair: -len(pair[0])):
        stem = wire.removesuffix("[]")
        below = [key for key in named if key.startswith(stem) and key not in wires and tokens_of(key, stem)]
        below = [] if below and one.kinds and not one.kinds & {"array", "object"} else below
        if below:
            node = SpelledNode.of(stem, [(key, named.pop(key)) for key in [*below, *({wire} & named.keys())]])
            found[one.name] = one.tree(node, decode)
        elif wire in named:
            found[one.name] = one.read_all(named.pop(wire), decode)
        elif one.explodes and one.style.get("style") != "deepObject" and one.is_only("object"):
            exploded.append(one)  # its members are parameters of their own
    is_open = [
        tool and all(each.get("additionalProperties") is not False for each in one.said.parts()) for one in exploded
    ]
    for one, takes_all in zip(exploded, is_open, strict=True):
        keys = [key for key in named if key in one.said.names() or (takes_all and sum(map(bool, is_open)) == 1)]
        members = {key: [decode(raw) for raw in named.pop(key)] for key in keys}
        found |= {one.name: {key: one.inner(key).listed(texts) for key, texts in members.items()}} if keys else {}
    return {one.name: found[one.name] for _, one in parts if one.name in found}, named


def _join(values: list[Json]) -> Json:
    if len(values) == 1:
        return values[0]
    return [one for each in values for one in (each if isinstance(each, list) else [each])]


def load_json(text: str) -> Json:
    """Return a JSON value; integers beyond 64 bits as floats, like other JSON readers."""
    try:
        value: Json = json.loads(text, parse_int=_as_number, object_pairs_hook=_as_object)
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, CannotRead) else CannotRead("its JSON is broken") from None
    return value


def _as_object(members: list[tuple[str, Json]]) -> JsonObject:
    found = dict(members)
    if len(found) != len(members):
        raise CannotRead("its JSON has a member twice")
    return found


def _as_number(digits: str) -> int | float:
    number = float(digits)
    is_beyond = math.isfinite(number) and not -(1 << 63) <= number < 1 << 64
    return number if is_beyond else int(digits)
