"""Changes between two states with old and new values, for the judge and for reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ..state import Json
from .difference import make_patch
from .patch import find, pointer, tokens

MANY = 20
"""Removed members of one container up to which each is reported as its own change."""


class Change(NamedTuple):
    """One change between two states.

    Attributes:
        kind: `remove`, `replace` and `add` are about the value at `path`; `shrink` is about a container there that has
            lost more than `MANY` members.
        path: JSON Pointer into the state before; of an added value, where it was put.
        old: The value before, None for `add`; for `shrink` how many members there were.
        new: The value after, None for `remove`; for `shrink` how many members there are.
        lost: For `shrink` the names of the lost members, or the lost items of a list.
    """

    kind: Literal["add", "replace", "remove", "shrink"]
    path: str
    old: Json = None
    new: Json = None
    lost: tuple[Json, ...] = ()


def net_changes(before: Json, after: Json) -> list[Change]:
    """Return the changes between two states: additions, then replacements, removals, and the largest losses last."""
    members: defaultdict[str, list[Change]] = defaultdict(list)
    for change in _changes(before, after):
        members[pointer(tokens(change.path)[:-1])].append(change)
    found = [change for path, group in members.items() for change in _folded(path, group, before)]
    return sorted(found, key=lambda change: ("add", "replace", "remove", "shrink").index(change.kind))


def _changes(before: Json, after: Json) -> Iterator[Change]:
    # operations of `make_patch` do not shift each other's items: a path leads to the old value in `before`
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
    """Return the changes of one container's members; combine more than `MANY` removals into one."""
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
