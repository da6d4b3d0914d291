"""The functions and text methods of the contract language; docs/contracts.md lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from ...state import Json
from . import dates
from .operators import equal, member, number
from .sandbox import MAX_DEPTH, Fault, Missing, Scope, a_list, a_number, a_small_int, a_text, given, kind

Function = Callable[..., Any]

UNSET = Missing("the default")
_MAX_CHARS = 100
_CENT = Decimal("0.01")
_IDENTIFIER = "0123456789abcdefghjkmnpqrstvwxyz"
_LONGEST_SHAPE = 40
_SHAPES = {
    "A": ascii_uppercase, "a": ascii_lowercase, "9": digits, "X": ascii_uppercase + digits, "x": digits + "abcdef",
}  # fmt: skip


def splice(scope: Scope, path: Any, depth: int = 0) -> list[str | int]:
    """Return the tokens of a path, lists in it spliced in. Raises Fault for invalid tokens, and for more than 100."""
    scope.tick()
    tokens: list[str | int] = []
    for token in a_list(path, "a path"):
        if type(token) is str or type(token) is int:
            tokens.append(token)
        elif isinstance(token, list) and depth < MAX_DEPTH:
            tokens += splice(scope, token, depth + 1)
        else:
            raise Fault(f"a path needs texts and whole numbers, not {kind(given(token))}")
        if len(tokens) > MAX_DEPTH:
            raise Fault(f"a path of more than {MAX_DEPTH} tokens")
    return tokens


def at(scope: Scope, document: Any, path: Any, default: Any = UNSET) -> Any:
    """Return the value at a path, else the default, else undefined. Raises Fault for an invalid path."""
    value = document
    for token in splice(scope, path):
        if type(value) is dict:
            value = value.get(token if type(token) is str else str(token), UNSET)
        else:
            value = member(value, _index(value, token), "")
        if type(value) is Missing:
            if default is not UNSET:
                return default
            return document if document is value else Missing(f"{token!r:.80} in the path")
    return value


def _index(value: Any, token: str | int) -> str | int:
    return int(token) if isinstance(value, list) and isinstance(token, str) and token.isdecimal() else token


def walk(scope: Scope, document: Any) -> list[Json]:
    """Return everything below a document, parents before their members, as `{path, key, value}`. Raises Fault."""
    found: list[Json] = []
    open_ends: list[tuple[list[str | int], Any]] = [([], given(document))]
    while open_ends:
        path, value = open_ends.pop()
        if path:
            scope.take(256 + 8 * len(path))
            found.append({"path": path, "key": path[-1], "value": value})
        if len(path) > MAX_DEPTH or len(found) > scope.limits.items:
            raise Fault(f"walk: more than {scope.limits.items:,} values, or more than {MAX_DEPTH} levels")
        scope.tick()
        open_ends.extend(_below(scope, path, value))
    return found


def _below(scope: Scope, path: list[str | int], value: Any) -> Iterator[tuple[list[str | int], Any]]:
    if not isinstance(value, dict | list):
        return
    scope.take_items(len(value))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in reversed(keys):
        yield [*path, key], value[key]


def zip_lists(scope: Scope, *lists: Any) -> list[Json]:
    """Return items of several lists side by side, as many as the shortest has. Raises Fault."""
    checked = [a_list(items, "zip") for items in lists]
    count = min((len(items) for items in checked), default=0)
    scope.take_items(count)
    scope.take(count * (64 + 8 * len(checked)))
    return [list(row) for row in zip(*checked, strict=False)]


def to_object(scope: Scope, pairs: Any) -> dict[str, Json]:
    """Return an object of a list of `[key, value]`; a whole number as a key becomes text. Raises Fault."""
    rows = a_list(pairs, "object")
    scope.take_items(2 * len(rows) + 1)
    found: dict[str, Json] = {}
    for row in rows:
        scope.tick()
        if not isinstance(row, list) or len(row) != 2:
            raise Fault("object needs a list of [key, value]")
        found[str(row[0]) if type(row[0]) is int else a_text(row[0], "a key")] = given(row[1])
    return found


def index(scope: Scope, values: Any, value: Any) -> Any:
    """Return the first index of `value` in a list or a text; undefined where it is absent. Raises Fault."""
    missing = Missing("the index of what is not there")
    if isinstance(values, str):
        position = values.find(a_text(value, "index of a text"))
        return missing if position < 0 else position
    for position, item in enumerate(a_list(values, "index")):
        scope.tick()
        if equal(scope, item, value):
            return position
    return missing


def whole_numbers(scope: Scope, *bounds: Any) -> list[int]:
    """Return `range` as a list. Raises Fault."""
    if not 1 <= len(bounds) <= 3:
        raise Fault("range needs one to three numbers")
    numbers = range(*(a_small_int(bound, "range", 2**61) for bound in bounds))  # `len` raises beyond a machine word
    scope.take_items(len(numbers))
    return list(numbers)


def new_id(scope: Scope, prefix: Any = "", shape: Any = None) -> str:
    """Return an identifier that is unique among calls, seeds and uses of `new_id` in this call.

    A let's identifiers do not depend on when the let is evaluated, so opening the call again gives the same ones.
    In a shape `A` is a capital letter, `a` a small one, `9` a digit, `X` a capital or a digit, `x` a hexadecimal digit;
    the rest is itself. A short shape has few identifiers: two calls may get the same.

    Raises:
        Fault: Prefix or shape is not a text, or the shape is longer than 40 characters.
    """
    begin = a_text(prefix, "new_id")
    scope.take_text(begin)
    digest = _draw(scope, begin)
    if shape is None:
        digest >>= 176
        return begin + "".join(_IDENTIFIER[digest >> 5 * place & 31] for place in range(12))
    if len(a_text(shape, "new_id's shape")) > _LONGEST_SHAPE:
        raise Fault(f"new_id: a shape has at most {_LONGEST_SHAPE} characters")
    for sign in shape:
        digest, place = divmod(digest, len(_SHAPES.get(sign, sign)))
        begin += _SHAPES.get(sign, sign)[place]
    return begin


def _draw(scope: Scope, what: str) -> int:
    """Return 256 bits from the seed, the call and how often it has drawn."""
    identity = scope.call_id if isinstance(scope.call_id, str) else scope.call_id()
    source = f"{scope.seed}\x1f{identity}\x1f{what}\x1f{scope.count_identifier()}"
    return int.from_bytes(hashlib.sha256(source.encode()).digest(), "big")


def random_int(scope: Scope, low: Any, high: Any) -> int:
    """Return a whole number from `low` to `high`, both included. Raises Fault."""
    first, last = (a_small_int(bound, "random_int", 2**62) for bound in (low, high))
    if last < first:
        raise Fault(f"random_int: {last} is below {first}")
    return first + _draw(scope, "random_int") % (last - first + 1)


def random_float(scope: Scope, low: Any, high: Any, places: Any = None) -> int | float:
    """Return a number from `low` to `high`, rounded to so many places. Raises Fault."""
    first, last = (a_number(bound, "random_float") for bound in (low, high))
    if last < first:
        raise Fault(f"random_float: {last} is below {first}")
    drawn = first + (last - first) * ((_draw(scope, "random_float") >> 203) / 2**53)
    return number(float(drawn) if places is None else round(drawn, a_small_int(places, "random_float", 20)))


def money(_: Scope, value: Any) -> int | float:
    """Return a number rounded to cents, half a cent upwards, by the digits it prints with. Raises Fault."""
    amount = a_number(value, "money")
    try:
        return number(float(Decimal(str(amount)).quantize(_CENT, rounding=ROUND_HALF_UP)))
    except InvalidOperation:
        raise Fault("money needs a number of at most 26 digits") from None


def trusted(scope: Scope, path: Any) -> bool:
    """Return whether all that stands at a path of the state was established, not supposed. Raises Fault."""
    if scope.trusts is None:
        raise Fault("trusted(path) is known only in a contract")
    return scope.trusts(splice(scope, path))


FUNCTIONS: dict[str, Function] = {
    "at": at, "walk": walk, "zip": zip_lists, "index": index, "range": whole_numbers, "new_id": new_id, "money": money,
    "object": to_object, "random_int": random_int, "random_float": random_float, "trusted": trusted,
    **dates.FUNCTIONS,
}  # fmt: skip
TAKEN = frozenset(("at", "walk", "zip", "index", "range", "new_id", "money"))
"""Functions whose names no let may have; the others are words that a tool may have for its own values."""


# text methods --------------------------------------------------------------------------------------------------------


def _split(scope: Scope, text: Any, sep: Any = None) -> list[str]:
    source = a_text(text, "split")
    if sep == "":
        raise Fault("split needs a separator that is not empty")
    pieces = source.split(None if sep is None else a_text(sep, "split"), scope.limits.items)
    scope.take_items(len(pieces))
    scope.take_text(source)
    return pieces


def _trimming(name: str) -> Function:
    trim = getattr(str, name)

    def method(scope: Scope, text: Any, chars: Any = None) -> str:
        source = a_text(text, name)
        if chars is not None and len(a_text(chars, name)) > _MAX_CHARS:
            raise Fault(f"{name} takes at most {_MAX_CHARS} characters")
        scope.take_text(source)
        return trim(source, chars)  # type: ignore[no-any-return]

    return method


def startswith(_: Scope, text: Any, prefix: Any) -> bool:
    """Return whether a text begins with another. Raises Fault."""
    return a_text(text, "startswith").startswith(a_text(prefix, "startswith"))


def lower(scope: Scope, text: Any) -> str:
    """Return a text in small letters. Raises Fault."""
    scope.take_text(a_text(text, "lower"), growth=3)
    return str(text).lower()


METHODS: dict[str, Function] = {
    "split": _split, "strip": _trimming("strip"), "rstrip": _trimming("rstrip"), "startswith": startswith,
    "lower": lower, "isdigit": lambda _, text: a_text(text, "isdigit").isdigit(),
}  # fmt: skip
