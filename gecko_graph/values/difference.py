"""Equality of JSON documents, and the patch that leads from one to the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ..state import Json, JsonObject, Patch
from .digest import digest

_ALIGN_LIMIT = 200
"""Removals and insertions up to which the items of two lists are aligned; the cost grows with its square."""

_Stretch = tuple[int, int, int, int]
"""`before[a:b]` has become `after[c:d]`."""


def make_patch(before: Json, after: Json) -> Patch:
    """Return a patch that turns `before` into `after`; it shares the values of `after`.

    Items of lists are aligned, so that a removed or inserted item is one operation. The same object on both sides is
    not compared further.
    """
    found: Patch = []
    _compare(before, after, "", found)
    return found


def json_equal(a: Json, b: Json) -> bool:
    """Return True where both are the same JSON value of the same types: 1, 1.0 and True are three values."""
    return equal(a, b, _same_scalar)


def equal(a: Json, b: Json, same: Callable[[Json, Json], bool]) -> bool:
    """Return True where both have the same containers, and scalars that are the `same`."""
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and equal(item, b[key], same) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y, same) for x, y in zip(a, b, strict=True))
    return same(a, b)


def same_value(a: Json, b: Json) -> bool:
    """Return True where two values are equal by value: 5 and 5.0 are, 1 and true are not."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _same_scalar(a: Json, b: Json) -> bool:
    return type(a) is type(b) and bool(a == b)


def _compare(before: Json, after: Json, place: str, found: Patch) -> None:
    """Add to `found` the operations that turn `before` into `after`, both at the path `place`."""
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and (not before or any(key in before for key in after)):
        _compare_dicts(before, after, place, found)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        _compare_lists(before, after, place, found)
    elif not json_equal(before, after):
        found.append({"op": "replace", "path": place, "value": after})


def _compare_dicts(before: JsonObject, after: JsonObject, place: str, found: Patch) -> None:
    found += [{"op": "remove", "path": place + pointer_step(key)} for key in before if key not in after]
    for key, value in after.items():
        if key not in before:
            found.append({"op": "add", "path": place + pointer_step(key), "value": value})
            continue
        old = before[key]
        if type(old) is not type(value) or isinstance(value, (dict, list)) or old != value:
            _compare(old, value, place + pointer_step(key), found)


def _compare_lists(before: list[Json], after: list[Json], place: str, found: Patch) -> None:
    """Compare from the end to the start, so that no operation shifts the items of the next."""
    stretches = _stretches(before, after)
    if stretches is None:
        found.append({"op": "replace", "path": place, "value": after})
        return
    for low, high, new_low, new_high in reversed(stretches):
        kept = min(high - low, new_high - new_low)
        for shift in range(kept):
            _compare(before[low + shift], after[new_low + shift], f"{place}/{low + shift}", found)
        found += [{"op": "remove", "path": f"{place}/{index}"} for index in reversed(range(low + kept, high))]
        for index in range(new_low + kept, new_high):
            found.append({"op": "add", "path": f"{place}/{low + index - new_low}", "value": after[index]})


def _stretches(before: list[Json], after: list[Json]) -> list[_Stretch] | None:
    """Return where two lists differ; None where they share so little that replacing the whole list is better."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if not old or not new or len(old) == len(new) == 1:
        return [(start, start + len(old), start, start + len(new))]
    kept = _kept([digest(item) for item in old], [digest(item) for item in new])
    if kept is None and len(old) != len(new):
        return None
    found = _gaps(kept or [], len(old), len(new))
    return [(start + a, start + b, start + c, start + d) for a, b, c, d in found]


def _common(a: list[Json], b: list[Json]) -> int:
    """Return how many items the two lists have in common at their start."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if not json_equal(x, y):
            return index
    return min(len(a), len(b))


def _gaps(kept: list[tuple[int, int]], old: int, new: int) -> list[_Stretch]:
    edges = [(-1, -1), *kept, (old, new)]
    gaps = [(a + 1, b, c + 1, d) for (a, c), (b, d) in pairwise(edges)]
    return [gap for gap in gaps if gap[0] < gap[1] or gap[2] < gap[3]]


def _kept(old: list[str], new: list[str]) -> list[tuple[int, int]] | None:
    """Return index pairs of the items that a shortest edit keeps (Myers 1986, greedy); None beyond the limit."""
    reach = {1: 0}
    rounds: list[dict[int, int]] = []
    for cost in range(min(_ALIGN_LIMIT, len(old) + len(new)) + 1):
        rounds.append(dict(reach))
        for diagonal in range(-cost, cost + 1, 2):
            x = _entry(reach, diagonal, cost)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _walked_back(rounds, len(old), len(new))
    return None


def _entry(reach: dict[int, int], diagonal: int, cost: int) -> int:
    """Return where a path of this cost enters the diagonal: by an insertion, or else by a removal."""
    return reach[diagonal + 1] if _inserts(reach, diagonal, cost) else reach[diagonal - 1] + 1


def _inserts(reach: dict[int, int], diagonal: int, cost: int) -> bool:
    return diagonal == -cost or (diagonal != cost and reach[diagonal - 1] < reach[diagonal + 1])


def _walked_back(rounds: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for cost in range(len(rounds) - 1, -1, -1):
        reach, diagonal = rounds[cost], x - y
        entry = _entry(reach, diagonal, cost)
        while x > entry:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if cost:
            x, y = (x, y - 1) if _inserts(reach, diagonal, cost) else (x - 1, y)
    return pairs[::-1]


def pointer_step(token: str | int) -> str:
    """Return one token of a JSON Pointer, escaped, with the slash before it."""
    return "/" + str(token).replace("~", "~0").replace("/", "~1")
