"""Digest, clone and check of a JSON document, at the speed of msgpack.

Documents that are `patch.json_equal` have the same digest in every process; others have different ones, as far as
sha256 can distinguish them. That an attempt starts from the identical state is checked this way.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from typing import Any, TypeVar, cast

import ormsgpack

from ..errors import StateError
from ..state import Json
from .leaves import map_scalars
from .paths import shorten

MAX_DEPTH = 100
"""Levels of nesting that a document may have."""

MAX_VALUES = 1_000_000
"""Values that a document may have: forty lists that each contain the last one twice cannot be written out."""

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_BIG_INT = 1
_CANONICAL = ormsgpack.OPT_SORT_KEYS | ormsgpack.OPT_PASSTHROUGH_BIG_INT
_MINUS_ZERO = b"\xcb\x80" + b"\x00" * 7
_LONGEST_PATH = 400
_SHOWN = 60

Document = TypeVar("Document")

_Place = list[str | int]
_Fault = tuple[_Place, str]
"""A path in the document, innermost step first, and what is wrong there."""


def digest(document: Json) -> str:
    """Return the document's sha256, in hexadecimal, independent of the order of its keys.

    Types count: 1, 1.0, True and "1" differ; 0.0 and -0.0, which are the same number, do not.
    """
    try:
        packed = ormsgpack.packb(document, default=_pack_int, option=_CANONICAL)
        if _MINUS_ZERO in packed:
            packed = ormsgpack.packb(_unsigned_zero(document), default=_pack_int, option=_CANONICAL)
    except TypeError:  # text with half a surrogate pair, which msgpack cannot encode
        packed = json.dumps(_unsigned_zero(document), sort_keys=True).encode("ascii")
    return hashlib.sha256(packed).hexdigest()


def clone(document: Document) -> Document:
    """Return a deep copy that shares nothing with the document: 0.4 ms for 100 kB."""
    try:
        return cast("Document", unpack(pack(document)))
    except TypeError:
        return copy.deepcopy(document)


def pack(document: Json) -> bytes:
    """Return the document as msgpack, its keys in their order. Raises TypeError where msgpack cannot encode it."""
    return ormsgpack.packb(document, default=_pack_int, option=ormsgpack.OPT_PASSTHROUGH_BIG_INT)


def unpack(packed: bytes) -> Json:
    """Return the document that `pack` has encoded."""
    return ormsgpack.unpackb(packed, ext_hook=_unpack_int)


def check_json(document: object, *, what: str) -> None:
    """Check that a value is JSON that a checkpoint can store.

    Checkpoints are msgpack: integers beyond 64 bits stop them, and half a surrogate pair comes back as another text.

    Args:
        document: The value to check; only plain dict, list, str, int, float, bool and None are JSON.
        what: What the value is, for the message: "task_state".

    Raises:
        StateError: Names the JSON path of the first thing, in document order, that is not JSON.
    """
    fault = _Check().fault(document, 0)
    if fault:
        place, reason = fault
        path = "".join(map(_step, place[::-1]))
        raise StateError(f"{what}: ${shorten(path, _LONGEST_PATH)} {reason}")


class _Check:
    """One walk through a document, counting what it has seen.

    A part that occurs in several places is walked once: `clean` has its number of values and its depth.
    """

    def __init__(self) -> None:
        self.left = MAX_VALUES
        self.deepest = 0
        self.inside: set[int] = set()
        self.clean: dict[int, tuple[int, int]] = {}

    def fault(self, value: object, depth: int) -> _Fault | None:
        if not isinstance(value, (dict, list)) or type(value) not in (dict, list):
            reason = _scalar_fault(value)
            return ([], reason) if reason else None
        values, levels = self.clean.get(id(value), (len(value), 0))
        self.left -= values
        if self.left < 0:
            return [], f"makes it too large: more than {MAX_VALUES:,} values"
        if levels and depth + levels <= MAX_DEPTH:
            self.deepest = max(self.deepest, depth + levels)
            return None
        return self._container_fault(value, depth)

    def _container_fault(self, value: Any, depth: int) -> _Fault | None:
        if id(value) in self.inside:
            return [], "contains itself"
        if depth >= MAX_DEPTH:
            return [], f"is nested more than {MAX_DEPTH} levels deep"
        left, deepest, self.deepest = self.left + len(value), self.deepest, depth + 1
        self.inside.add(id(value))
        fault = self._member_fault(value, depth)
        self.inside.discard(id(value))
        self.clean[id(value)] = (left - self.left, self.deepest - depth)
        self.deepest = max(self.deepest, deepest)
        return fault

    def _member_fault(self, value: Any, depth: int) -> _Fault | None:
        named = isinstance(value, dict)
        members: Any = value.items() if named else enumerate(value)
        for key, item in members:
            if named and type(key) is not str:
                return [], f"has the key {shorten(ascii(key), _SHOWN)}, {_name_type(key)}: keys are text"
            if named and not key.isascii() and _has_half_surrogate(key):
                return [], f"has the key {shorten(ascii(key), _SHOWN)}: half a surrogate pair is not text"
            if type(item) is str and item.isascii():
                continue
            fault = self.fault(item, depth + 1)
            if fault:
                fault[0].append(key)
                return fault
        return None


def _scalar_fault(value: object) -> str | None:
    if type(value) is str:
        broken = not value.isascii() and _has_half_surrogate(value)
        return f"is {shorten(ascii(value), _SHOWN)}: half a surrogate pair is not text" if broken else None
    if type(value) is float:
        return None if math.isfinite(value) else f"is {value}: not a JSON number"
    if type(value) is int:
        return (
            None if _INT_MIN <= value <= _INT_MAX else "is an integer of more than 64 bits: checkpoints cannot store it"
        )
    if value is None or type(value) is bool:
        return None
    return f"is {_name_type(value)}, which is not JSON{_suggest_type(value)}"


def _suggest_type(value: object) -> str:
    if isinstance(value, dict):
        return ": give a plain dict"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ": give a list"
    if isinstance(value, (str, int, float)):
        return ": give the plain value"
    return ""


def _name_type(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _has_half_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"


def _pack_int(value: object) -> ormsgpack.Ext:
    if not isinstance(value, int):
        raise TypeError(f"{_name_type(value)} is not JSON")
    return ormsgpack.Ext(_BIG_INT, hex(value).encode())


def _unpack_int(tag: int, data: bytes) -> int:
    return int(data, 16)


def _unsigned_zero(value: Json) -> Json:
    return map_scalars(value, lambda each: 0.0 if isinstance(each, float) and each == 0 else each)
