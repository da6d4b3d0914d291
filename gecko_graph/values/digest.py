"""Digest, copy and check JSON documents, at the speed of msgpack.

Documents that are equal by `json_equal` have the same digest in every process; others have different ones (sha256). The
digest proves that an attempt starts from the identical state.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import ormsgpack

from ..errors import StateError
from ..state import Json
from .places import Place, excerpt, map_scalars, short_pointer

MAX_DEPTH = 100
"""Most levels of nesting of a document."""

MAX_VALUES = 1_000_000
"""Most values of a document: forty lists that each contain the previous one twice cannot be written out."""

_BIG_INT = 1
_CANONICAL = ormsgpack.OPT_SORT_KEYS | ormsgpack.OPT_PASSTHROUGH_BIG_INT
_MINUS_ZERO = b"\xcb\x80" + b"\x00" * 7
Document = TypeVar("Document")


def digest(document: Json) -> str:
    """Return the document's sha256 in hexadecimal, independent of the order of keys.

    Types count: 1, 1.0, True and "1" differ; 0.0 and -0.0 are the same number.
    """
    try:
        packed = ormsgpack.packb(document, default=_pack_int, option=_CANONICAL)
        if _MINUS_ZERO in packed:
            packed = ormsgpack.packb(_unsigned_zero(document), default=_pack_int, option=_CANONICAL)
    except TypeError:  # text with a lone surrogate, which msgpack cannot encode
        packed = json.dumps(_unsigned_zero(document), sort_keys=True).encode("ascii")
    return hashlib.sha256(packed).hexdigest()


def clone(document: Document) -> Document:
    """Return a deep copy: 0.4 ms for 100 kB."""
    try:
        return unpack(pack(document))  # type: ignore[no-any-return]
    except TypeError:
        return copy.deepcopy(document)


def pack(document: Json) -> bytes:
    """Return the document as msgpack, with keys in their order. Raises TypeError if msgpack cannot encode it."""
    return ormsgpack.packb(document, default=_pack_int, option=ormsgpack.OPT_PASSTHROUGH_BIG_INT)


def unpack(packed: bytes) -> Json:
    """Return the document that `pack` encoded."""
    return ormsgpack.unpackb(packed, ext_hook=lambda _, data: int(data, 16))


def open_json(value: Json) -> Json:
    """Return the JSON object or list in a text, if it can be stored; else the argument."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        opened: Json = json.loads(value)
        check_json(opened, what="the value")
    except (ValueError, RecursionError):
        return value
    return opened


def check_json(document: object, *, what: str) -> None:
    """Check that a value is JSON that a checkpoint can store; the message begins with `what`.

    Raises:
        StateError: With the JSON Pointer to the first invalid part in document order.
    """
    if fault := find_non_json(document):
        raise StateError(f"{what}: {fault.path or 'the root'} is {fault.got}, expected {fault.expected}")


class Finding(NamedTuple):
    """A wrong part of a value: its JSON Pointer for messages, the expected and the actual value in words."""

    path: str
    expected: str
    got: str


def find_non_json(document: object, *, levels: int = MAX_DEPTH) -> Finding | None:
    """Return the first part, in document order, that is not JSON or that a checkpoint cannot store.

    JSON is plain dict, list, str, int, float, bool and None. Checkpoints are msgpack, which rejects integers beyond 64
    bits and changes lone surrogates.
    """
    if type(document) is str and document.isascii():
        return None
    fault = _find_fault(document, 0, levels, [MAX_VALUES])
    return fault and Finding(short_pointer(fault[0][::-1]), *fault[1:])


def _find_fault(value: Any, depth: int, levels: int, left: list[int]) -> tuple[list[Any], str, str] | None:
    """Return the first fault, with its place inside out; `left` counts down the values of the whole document."""
    is_object = type(value) is dict
    if not is_object and type(value) is not list:
        expected = _why_no_scalar(value)
        return ([], expected, f"{value!a:.60}" if isinstance(value, str) else excerpt(value)) if expected else None
    left[0] -= len(value)
    if depth >= levels or left[0] < 0:
        most = f"{levels} levels of nesting" if left[0] >= 0 else f"{MAX_VALUES:,} values"
        return [], f"at most {most}", "…"
    for key, item in value.items() if is_object else enumerate(value):
        if is_object and (type(key) is not str or (not key.isascii() and _has_half_surrogate(key))):
            return [], "an object with text keys", f"the key {key!a:.60}"
        if (type(item) is str and item.isascii()) or item is None or type(item) is bool:
            continue
        if fault := _find_fault(item, depth + 1, levels, left):
            fault[0].append(key)
            return fault
    return None


def _why_no_scalar(value: object) -> str | None:
    if type(value) is str:
        return "text without a lone surrogate" if not value.isascii() and _has_half_surrogate(value) else None
    if type(value) is float:
        return None if math.isfinite(value) else "a finite number"
    if type(value) is int:
        return None if -(1 << 63) <= value < 1 << 64 else "a whole number of at most 64 bits"
    return None if value is None or type(value) is bool else f"a JSON value, not of the type {type(value).__name__}"


def shallow(one: Any) -> Any:
    """Return a shallow copy without `copy.copy`, which would call `__reduce__`."""
    made = object.__new__(type(one))
    made.__dict__.update(one.__dict__)
    return made


def _has_half_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _pack_int(value: object) -> ormsgpack.Ext:
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return ormsgpack.Ext(_BIG_INT, hex(value).encode())


def _unsigned_zero(value: Json) -> Json:
    return map_scalars(value, lambda each: 0.0 if isinstance(each, float) and each == 0 else each)


# digests without random identifiers: references count, names do not ------------------------------------


def digest_apart_from(drawn: Collection[Json], state: Json) -> str:
    """Return a digest in which random values are replaced by labels of their context, so that only references count.

    The labels are refined twice (as in colour refinement of graphs).
    """
    labels = dict.fromkeys(drawn, "drawn")
    for _ in range(2 if drawn else 0):
        around: dict[Json, list[str]] = {each: [] for each in drawn}
        for place, value, inside in _members(state):
            for each in (value, place[-1]):
                if isinstance(each, str) and each in around:
                    shown = [labels.get(key, key) if isinstance(key, str) else 0 for key in place]
                    around[each].append(digest([shown, each == value, _mask(inside, labels)]))
        labels = {each: digest(sorted(found)) for each, found in around.items()}
    return digest(_mask(state, labels))


def _members(value: Json, place: Place = ()) -> Iterator[tuple[Place, Json, Json]]:
    """Yield each nested value with its place and its context: a container itself, for a scalar its container."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        here = (*place, key)
        yield here, each, each if isinstance(each, dict | list) else value
        yield from _members(each, here)


def _mask(value: Json, labels: Mapping[Json, str]) -> Json:
    if isinstance(value, dict):
        return sorted(([labels.get(key, key), _mask(each, labels)] for key, each in value.items()), key=digest)
    if isinstance(value, list):
        return [_mask(each, labels) for each in value]
    return labels.get(value, value) if isinstance(value, str) else value
