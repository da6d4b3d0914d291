"""The best mapping of milestones to snapshots (ToolSandbox, appendix A.7, equation 2).

Each milestone is matched to a snapshot of its own or to none, and to a later one than the milestones before it. Where
the best free assignment keeps the order, it is the answer. Else sets of milestones are built up, larger by one at each
round: of a set only the best sum for each last snapshot matters, and what its members mean to those that refer to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

from .constraints import Constraint, Milestone, Reached
from .measures import check_installed
from .tables import MESSAGE, Snapshot, number_versions

WIDEST = 60
"""Sets of milestones that are kept at a round; where there were more, the score may be too low, and is marked."""

_NARROW = 4
_NOISE = 1e-12

Row: TypeAlias = Any
"""A numpy array with one number for each snapshot; numpy is not installed with the core."""

Seen: TypeAlias = tuple[tuple[int, int | None], ...]
"""By milestone that later ones refer to, the snapshot that stands for those that are the same to them; or None."""


def match(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> tuple[list[Reached], bool]:
    """Return each milestone with its snapshot, and whether there is certainly no better mapping.

    Raises:
        GeckoError: The extra `milestones` is not installed.
    """
    if not milestones or not trajectory:
        return [{"id": each.id, "similarity": 0.0, "snapshot": None} for each in milestones], True
    table = Similarities(milestones, trajectory)
    places, exact = table.assign(), True
    if not table.is_allowed(places):
        _, floor, _ = _build_up(table, widest=_NARROW, floor=-1.0)
        found, _, exact = _build_up(table, widest=WIDEST, floor=floor - _NOISE)
        places = found or {}
    return [
        {"id": each.id, "similarity": table.similarity(index, places), "snapshot": places.get(index)}
        for index, each in enumerate(milestones)
    ], exact


class Similarities:
    """Similarities of milestones, by their numbers, to snapshots; `most` as if every reference were as it is best."""

    def __init__(self, milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> None:
        check_installed()
        import numpy

        self.np = numpy
        numbers = {each.id: index for index, each in enumerate(milestones)}
        self.after = [frozenset(numbers[name] for name in each.after) for each in milestones]
        self.references = [sorted(numbers[name] for name in each.references) for each in milestones]
        self._milestones, self._trajectory, self._numbers = milestones, trajectory, numbers
        self._versions = cache(partial(number_versions, trajectory))
        self._rows: dict[tuple[int, Seen], Row] = {}
        self._factors: dict[tuple[int, int | None], Row] = {}
        self.stands_for = {
            index: self._merge(index) for index in sorted({each for all_ in self.references for each in all_})
        }
        self.users = {
            index: frozenset(user for user, used in enumerate(self.references) if index in used)
            for index in self.stands_for
        }
        self.most = numpy.array([self._best_row(index) for index in range(len(milestones))])

    def assign(self) -> dict[int, int]:
        """Return the best assignment without regard to order and references."""
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(self.most, maximize=True)
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return {row: column for row, column in pairs if self.most[row, column] > 0}

    def row(self, index: int, seen: Mapping[int, int | None]) -> Row:
        """Return a milestone's similarity to each snapshot, with its references matched as given."""
        key = index, tuple((each, seen.get(each)) for each in self.references[index])
        if key not in self._rows:
            places = dict(key[1])
            self._rows[key] = self._multiply(
                index, [self._factor(each, self._place(each, places)) for each in self._milestones[index].constraints]
            )
        return self._rows[key]

    def similarity(self, index: int, places: Mapping[int, int]) -> float:
        """Return the similarity of a milestone to its snapshot, 0 without one."""
        if index not in places:
            return 0.0
        # of a reference, the first snapshot that is the same as its own to all that refer to it
        seen = {each: self.stands_for[each][places[each]] for each in self.references[index] if each in places}
        return float(self.row(index, seen)[places[index]])

    def is_allowed(self, places: Mapping[int, int]) -> bool:
        """Return whether an assignment keeps the order, and loses nothing by what its references are matched to."""
        return all(
            all(places[before] < place for before in self._matched_before(index, places))
            and self.similarity(index, places) >= self.most[index, place] - _NOISE
            for index, place in places.items()
        )

    def _matched_before(self, index: int, places: Mapping[int, int]) -> Iterator[int]:
        for before in self.after[index]:
            if before in places:
                yield before
            else:
                yield from self._matched_before(before, places)

    def _place(self, constraint: Constraint, places: Mapping[int, int | None]) -> int | None:
        number = self._numbers.get(constraint.reference or "")
        return 0 if number is None else places.get(number)

    def _factor(self, constraint: Constraint, place: int | None) -> Row:
        """Return a constraint's similarity to each snapshot, its reference matched to a place; each pair once."""
        key = id(constraint), place
        if key not in self._factors:
            versions = self._versions(constraint.table)
            then = None if place is None else self._trajectory[place]
            firsts = (self._trajectory[versions.index(version)] for version in range(max(versions) + 1))
            values = [constraint.compare(snapshot, then) for snapshot in firsts]
            self._factors[key] = self.np.array(values)[versions]
        return self._factors[key]

    def _multiply(self, index: int, factors: Sequence[Row]) -> Row:
        count = sum(each.kind != "guardrail" for each in self._milestones[index].constraints)
        return self.np.prod(factors, axis=0) ** (1 / max(count, 1))

    def _best_row(self, index: int) -> Row:
        best = []
        for constraint in self._milestones[index].constraints:
            number = self._numbers.get(constraint.reference or "")
            places: list[int | None] = [0] if number is None else [None, *sorted(set(self.stands_for[number]))]
            best.append(self.np.max([self._factor(constraint, place) for place in places], axis=0))
        return self._multiply(index, best)

    def _merge(self, index: int) -> list[int]:
        name = self._milestones[index].id
        using = [one for each in self._milestones for one in each.constraints if one.reference == name]
        tables = sorted({each.table for each in using} | {MESSAGE for each in using if each.fill is not None})
        firsts: dict[tuple[int, ...], int] = {}
        kinds = zip(*map(self._versions, tables), strict=True)
        return [firsts.setdefault(kind, at) for at, kind in enumerate(kinds)]


class _Set:
    """Milestones that are decided: by last snapshot (the first entry: none) the best sum, and how it came about."""

    def __init__(self) -> None:
        self.ways: list[tuple[Row, _Set | None, int, bool]] = []
        self.best: Row = None

    def add(self, np: Any, sums: Row, before: _Set | None, index: int, *, matched: bool) -> None:
        self.ways.append((sums, before, index, matched))
        self.best = sums if self.best is None else np.maximum(self.best, sums)

    def trace_back(self, np: Any) -> dict[int, int]:
        """Return the snapshots of the best sum, by milestone."""
        places: dict[int, int] = {}
        now, last = self, int(np.argmax(self.best))
        while True:
            _sums, before, index, matched = next(way for way in now.ways if way[0][last] == now.best[last])
            if before is None:
                return places
            if matched:
                places[index] = last - 1
                last = int(np.argmax(before.best[:last]))
            now = before


def _build_up(table: Similarities, *, widest: int, floor: float) -> tuple[dict[int, int] | None, float, bool]:
    """Return the best mapping, its sum, and whether no set was left out; no mapping where none is above the floor."""
    np, size = table.np, len(table.after)
    start, exact = _Set(), True
    start.add(np, np.concatenate(([0.0], np.full(table.most.shape[1], -np.inf))), None, 0, matched=False)
    ahead = _find_most_ahead(table)
    layer: dict[tuple[frozenset[int], Seen], _Set] = {(frozenset(), ()): start}
    for _ in range(size):
        wider: dict[tuple[frozenset[int], Seen], _Set] = {}
        for (decided, seen), before in layer.items():
            for index in range(size):
                if index not in decided and table.after[index] <= decided:
                    _extend(table, wider, (decided, seen), before, index)
        bounds = {key: _bound(np, one, key[0], ahead) for key, one in wider.items()}
        kept = sorted((key for key, bound in bounds.items() if bound > floor), key=lambda key: -bounds[key])
        exact = exact and len(kept) <= widest
        layer = {key: wider[key] for key in kept[:widest]}
    best = max(layer.values(), key=lambda one: one.best.max(), default=None)
    if best is None:
        return None, floor, exact
    return best.trace_back(np), float(best.best.max()), exact


def _find_most_ahead(table: Similarities) -> Row:
    """Return by milestone, after each last snapshot, the most that it can still reach."""
    np = table.np
    reversed_ = np.maximum.accumulate(table.most[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate((reversed_, np.zeros((len(table.most), 1))), axis=1)


def _bound(np: Any, one: _Set, decided: frozenset[int], ahead: Row) -> float:
    return float(np.max(one.best + ahead[[index not in decided for index in range(len(ahead))]].sum(axis=0)))


def _extend(
    table: Similarities,
    wider: dict[tuple[frozenset[int], Seen], _Set],
    key: tuple[frozenset[int], Seen],
    before: _Set,
    index: int,
) -> None:
    """Add the sets with one milestone more: matched to no snapshot, and to those that are the same to later ones."""
    np, (decided, seen) = table.np, key
    more = decided | {index}

    still = {one: at for one, at in seen if not table.users[one] <= more}

    def add(place: int | None, sums: Row, *, matched: bool) -> None:
        places = still if table.users.get(index, more) <= more else {**still, index: place}
        wider.setdefault((more, tuple(sorted(places.items()))), _Set()).add(np, sums, before, index, matched=matched)

    add(None, before.best, matched=False)
    row = table.row(index, dict(seen))
    if not row.any():
        return
    reached = np.maximum.accumulate(before.best)[:-1] + np.where(row > 0, row, -np.inf)
    sums = np.concatenate(([-np.inf], reached))
    if index not in table.stands_for:
        add(None, sums, matched=True)
        return
    stands_for = np.array([-1, *table.stands_for[index]])
    for place in sorted(set(stands_for[sums > -np.inf].tolist())):
        add(place, np.where(stands_for == place, sums, -np.inf), matched=True)
