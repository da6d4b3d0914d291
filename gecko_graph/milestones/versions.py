"""Which snapshots show the same rows of a table: most messages change nothing, and what is equal is compared once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..task_state.digest import digest
from .tables import Snapshot, Table


class _Numbers(NamedTuple):
    by_snapshot: list[int]
    first: list[int]


class Versions:
    """By table, a number for each snapshot, equal where the table has the same rows in whatever order."""

    def __init__(self, trajectory: Sequence[Snapshot]) -> None:
        self._trajectory = trajectory
        self._known: dict[str, _Numbers] = {}

    def find(self, table: str) -> list[int]:
        """Return the number of the table's version in each snapshot."""
        return self._numbers(table).by_snapshot

    def first(self, table: str) -> list[int]:
        """Return the first snapshot of each version."""
        return self._numbers(table).first

    def _numbers(self, table: str) -> _Numbers:
        if table not in self._known:
            self._known[table] = self._count(table)
        return self._known[table]

    def _count(self, table: str) -> _Numbers:
        digests: dict[str, int] = {}
        numbers, first = list[int](), list[int]()
        before: Table | None = None
        for at, snapshot in enumerate(self._trajectory):
            rows = snapshot.get(table, ())
            if rows is not before:
                before, key = rows, ",".join(sorted(map(digest, rows)))
                number = digests.setdefault(key, len(digests))
            if number == len(first):
                first.append(at)
            numbers.append(number)
        return _Numbers(numbers, first)
