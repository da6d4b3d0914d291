"""Equality of JSON documents, the patch from one to another, and the changes with old and new values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ..state import Json, JsonObject, Patch
from .digest import digest
from .patch import equal, find, tokens
from .places import pointer, pointer_step

_ALIGN_LIMIT = 200
"""Most removals and insertions for which two lists are aligned; the cost is quadratic."""


def make_patch(before: Json, after: Json, *, by_members: bool = False) -> Patch:
    """Return a patch that turns `before` into `after`; it shares the values of `after`.

    List items are aligned, so that a removed or inserted item is one operation. Identical objects are not compared
    further. An object without a common key is replaced as a whole, or with `by_members` member by member; so is a list
    if one of the two is empty.
    """
    found: Patch = []
    _compare(before, after, "", found, by_members)
    return found


def json_equal(a: Json, b: Json) -> bool:
    """Return True if both are the same JSON value of the same types: 1, 1.0 and True differ."""
    return equal(a, b, lambda one, other: type(one) is type(other) and bool(one == other))


def _compare(before: Json, after: Json, place: str, found: Patch, by_members: bool) -> None:
    """Append to `found` the operations that turn `before` into `after`, both at the path `place`."""
    if before is after:
        return
    if (
        isinstance(before, dict)
        and isinstance(after, dict)
        and (by_members or not before or any(key in before for key in after))
    ):
        _compare_dicts(before, after, place, found, by_members)
    elif isinstance(before, list) and isinstance(after, list) and (by_members or (before and after)):
        _compare_lists(before, after, place, found, by_members)
    elif not json_equal(before, after):
        found.append({"op": "replace", "path": place, "value": after})


def _compare_dicts(before: JsonObject, after: JsonObject, place: str, found: Patch, by_members: bool) -> None:
    found += [{"op": "remove", "path": place + pointer_step(key)} for key in before if key not in after]
    for key, value in after.items():
        if key not in before:
            found.append({"op": "add", "path": place + pointer_step(key), "value": value})
            continue
        old = before[key]
        if type(old) is not type(value) or isinstance(value, (dict, list)) or old != value:
            _compare(old, value, place + pointer_step(key), found, by_members)


def _compare_lists(before: list[Json], after: list[Json], place: str, found: Patch, by_members: bool) -> None:
    """Compare from the end to the start, so that no operation shifts the items of later operations."""
    stretches = _stretches(before, after)
    if stretches is None:
        found.append({"op": "replace", "path": place, "value": after})
        return
    for low, high, new_low, new_high in reversed(stretches):
        kept = min(high - low, new_high - new_low)
        for shift in range(kept):
            _compare(before[low + shift], after[new_low + shift], f"{place}/{low + shift}", found, by_members)
        found += [{"op": "remove", "path": f"{place}/{index}"} for index in reversed(range(low + kept, high))]
        for index in range(new_low + kept, new_high):
            found.append({"op": "add", "path": f"{place}/{low + index - new_low}", "value": after[index]})


def _stretches(before: list[Json], after: list[Json]) -> list[tuple[int, int, int, int]] | None:
    """Return the differing stretches (`before[a:b]` became `after[c:d]`); None if the whole list should be replaced."""
    start = _count_common(before, after)
    end = _count_common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    kept = _kept([digest(item) for item in old], [digest(item) for item in new]) if old and new else []
    if kept is None and len(old) != len(new):
        return None
    edges = [(-1, -1), *(kept or ()), (len(old), len(new))]
    gaps = [(start + a + 1, start + b, start + c + 1, start + d) for (a, c), (b, d) in pairwise(edges)]
    return [(a, b, c, d) for a, b, c, d in gaps if a < b or c < d]


def _kept(old: list[str], new: list[str]) -> list[tuple[int, int]] | None:
    """Return index pairs of the items that a shortest edit keeps (Myers 1986, greedy); None beyond the limit."""
    reach: dict[int, tuple[int, Any]] = {1: (0, None)}  # per diagonal: its end, and the pairs
    for cost in range(min(_ALIGN_LIMIT, len(old) + len(new)) + 1):
        for diagonal in range(-cost, cost + 1, 2):
            inserts = diagonal == -cost or (diagonal != cost and reach[diagonal - 1][0] < reach[diagonal + 1][0])
            x, pairs = reach[diagonal + 1] if inserts else reach[diagonal - 1]
            x += not inserts
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                pairs = (pairs, (x, x - diagonal))
                x += 1
            reach[diagonal] = x, pairs
            if x >= len(old) and x - diagonal >= len(new):
                return _unrolled(pairs)
    return None


def _unrolled(pairs: Any) -> list[tuple[int, int]]:
    found = []
    while pairs:
        pairs, pair = pairs
        found.append(pair)
    return found[::-1]


def _count_common(a: list[Json], b: list[Json]) -> int:
    """Return the number of common items at the start of two lists."""
    same = (json_equal(x, y) for x, y in zip(a, b, strict=False))
    return next((index for index, is_same in enumerate(same) if not is_same), min(len(a), len(b)))


MANY = 20
"""Most removed members of one container that are reported as separate changes."""


class Change(NamedTuple):
    """One change between two states.

    Attributes:
        kind: `remove`, `replace` and `add` concern the value at `path`; `shrink` a container that has lost more than
            `MANY` members.
        path: JSON Pointer into the state before; for `add` the place of the new value.
        old: The value before, None for `add`; for `shrink` the number of members before.
        new: The value after, None for `remove`; for `shrink` the number of members after.
        lost: For `shrink` the names of lost members, or the lost items of a list.
    """

    kind: Literal["add", "replace", "remove", "shrink"]
    path: str
    old: Json = None
    new: Json = None
    lost: tuple[Json, ...] = ()


def net_changes(before: Json, after: Json) -> list[Change]:
    """Return the changes between two states: additions, replacements, removals, and the largest losses last."""
    members: defaultdict[str, list[Change]] = defaultdict(list)
    for change in _changes(before, after):
        members[pointer(tokens(change.path)[:-1])].append(change)
    found = [change for path, group in members.items() for change in _folded(path, group, before)]
    return sorted(found, key=lambda change: ("add", "replace", "remove", "shrink").index(change.kind))


def _changes(before: Json, after: Json) -> Iterator[Change]:
    # operations of `make_patch` do not shift each other's items, so each path finds the old value in `before`
    for operation in make_patch(before, after):
        path, new = operation["path"], operation.get("value")
        if operation["op"] == "add":
            yield Change("add", path, None, new)
            continue
        old = find(before, tokens(path))
        if operation["op"] == "replace" and isinstance(old, (dict, list)) and type(old) is type(new):
            yield from (Change("remove", path + pointer([key]), value) for key, value in _members(old))
            yield from (Change("add", path + pointer([key]), None, value) for key, value in _members(new))
        else:
            yield Change(operation["op"], path, old, new)


def _folded(path: str, group: list[Change], before: Json) -> list[Change]:
    """Return the changes of one container's members, with more than `MANY` removals combined into one."""
    lost = [change for change in group if change.kind == "remove"]
    if len(lost) <= MANY:
        return group
    others = [change for change in group if change.kind != "remove"]
    container = find(before, tokens(path))
    names = [tokens(change.path)[-1] if isinstance(container, dict) else change.old for change in lost]
    left = len(container) - len(lost) + sum(change.kind == "add" for change in others)
    return [*others, Change("shrink", path, len(container), left, tuple(names))]


def _members(container: Json) -> list[tuple[str | int, Json]]:
    return list(container.items() if isinstance(container, dict) else enumerate(container))
