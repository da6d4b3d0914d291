"""A conversation's required and forbidden events, its score, and the best mapping of milestones to snapshots.

ToolSandbox, section 2.3 and appendix A.7, equations 1 and 2. Each milestone is matched to at most one snapshot of its
own, later than the milestones before it. If the best free assignment keeps this order, it is used. Otherwise a search
goes through the snapshots; its states are the milestones that can no longer be matched, with the references that still
matter, and only the best sum of each state is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import accumulate
from typing import Any, NotRequired, TypeAlias, cast

from typing_extensions import TypedDict

from ...state import VERSION
from .constraints import NOISE, Constraint, Milestone, Missed, Reached, distance, is_reached
from .measures import check_installed
from .tables import MESSAGE, WRITES, Snapshot

WIDEST = 1_000
"""Most states kept per snapshot; if there were more, the score may be too low, and is marked `inexact`."""

_NARROW = 4
_NOISE = 1e-12

Seen: TypeAlias = tuple[tuple[int, int], ...]
"""Referenced milestones to snapshots; snapshots that are equal for the references share a representative."""


class Score(TypedDict):
    """The score of one conversation. `similarity` is None without milestones."""

    v: int
    similarity: float | None
    milestone_similarity: float | None
    minefield_similarity: float
    milestones: list[Reached]
    minefields: list[Reached]
    inexact: NotRequired[bool]
    """True if there were too many orders to compare all: the true score may be higher."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Milestones and minefields, each in the order of their edges."""

    milestones: tuple[Milestone, ...] = ()
    minefields: tuple[Milestone, ...] = ()

    @property
    def tables(self) -> list[str]:
        """Names of the tables in its constraints."""
        both = (*self.milestones, *self.minefields)
        return list(dict.fromkeys(each.table for one in both for each in one.constraints))

    def is_end(self, trajectory: Sequence[Snapshot]) -> bool:
        """Return whether the last snapshot is completely as wanted; cheaper than a score."""
        last = (each for each in self._count_for(trajectory) if each.last)
        return all(each.compare(trajectory, -1, {}) >= 1 - NOISE for each in last)

    def score(self, trajectory: Sequence[Snapshot]) -> Score:
        """Score a conversation (equations 1 and 2) with one snapshot per message from the user's first one on.

        Each snapshot is matched to one milestone at most, and every milestone counts. The time before the first
        milestone is guarded, too. Any similarity to a minefield is a hit.
        """
        milestones = self._count_for(trajectory)
        reached, exact = _match(milestones, trajectory)
        stepped, sure = _match(self.minefields, trajectory)
        reached = list(_explain(milestones, reached, trajectory))
        stepped = list(_explain(self.minefields, stepped, trajectory, bad=True))
        minus = mean([each["similarity"] for each in stepped]) or 0.0
        score = build_score(reached, stepped, mean([each["similarity"] for each in reached]), minus)
        return score if exact and sure else {**score, "inexact": True}

    def _count_for(self, trajectory: Sequence[Snapshot]) -> list[Milestone]:
        """Return the milestones without the guardrails of tables that the goal's own tools have changed."""
        writes = {(row["name"], name) for each in trajectory for row in each.get(WRITES, ()) for name in row["tables"]}
        kept = ((each for each in one.constraints if not _frees(each, writes)) for one in self.milestones)
        return [replace(one, constraints=tuple(each)) for one, each in zip(self.milestones, kept, strict=True)]


def build_score(reached: list[Reached], stepped: list[Reached], plus: float | None, minus: float) -> Score:
    """Return a score from the reached milestones and the hit minefields, and the means of their similarities."""
    return {
        "v": VERSION,
        "similarity": 0.0 if minus else plus,
        "milestone_similarity": plus,
        "minefield_similarity": minus,
        "milestones": reached,
        "minefields": stepped,
    }


def _match(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> tuple[list[Reached], bool]:
    """Return each milestone with its snapshot, and whether the mapping is certainly the best."""
    if not trajectory:
        return [build_reached(each, 0.0, None) for each in milestones], True
    free, exact = [each for each in milestones if not each.last], True
    found: dict[str, tuple[float, int | None]] = {
        each.id: (each.compare(trajectory, -1, {}), len(trajectory) - 1) for each in milestones if each.last
    }
    if free:
        table = _Similarities(free, trajectory)
        places = table.assign()
        if not table.is_allowed(places):
            _, floor, _ = _search(table, widest=_NARROW, floor=-1.0)
            places, _, exact = _search(table, widest=WIDEST, floor=floor - _NOISE)
        found |= {each.id: (table.similarity(at, places), places.get(at)) for at, each in enumerate(free)}
    return [build_reached(each, *found[each.id]) for each in milestones], exact


def build_reached(milestone: Milestone, similarity: float, snapshot: int | None) -> Reached:
    found: Any = {name: getattr(milestone, name) for name in ("id", "threshold", "text")}
    return cast(Reached, {**found, "similarity": similarity, "snapshot": snapshot})


def _frees(one: Constraint, writes: Collection[tuple[str, str]]) -> bool:
    return any((tool, one.table) in writes for tool in one.frees)


def _explain(
    milestones: Sequence[Milestone], reached: Sequence[Reached], trajectory: Sequence[Snapshot], *, bad: bool = False
) -> Iterator[Reached]:
    """Yield milestones with their differences from the nearest snapshot, minefields with their hits."""
    places = {each["id"]: each["snapshot"] for each in reached if each["snapshot"] is not None}
    for milestone, one in zip(milestones, reached, strict=True):
        if not trajectory or (not one["similarity"] if bad else is_reached(one)):
            yield one
            continue
        candidates = range(len(trajectory)) if one["snapshot"] is None else [one["snapshot"]]
        told = {at: milestone.explain(trajectory, at, places, bad=bad) for at in candidates}
        far = {at: distance([each for each in told[at] if each["part"] != "guard"]) for at in candidates}
        best = [at for at in candidates if far[at] == min(far.values())]
        nearest = best[-1 if any(far[best[0]]) else 0]
        missed = told[nearest] or list(_explain_order(one["id"], nearest, milestones, places))
        yield {**one, "nearest": nearest, "missed": missed}


def _explain_order(id_: str, at: int, all_: Sequence[Milestone], places: Mapping[str, int]) -> Iterator[Missed]:
    """Yield why a similar snapshot is not matched: another milestone has it, or the order is wrong."""
    before = {each.id: find_earlier(each.id, all_) for each in all_}
    for other, place in places.items():
        late, early = place >= at and other in before[id_], place <= at and id_ in before[other]
        if late or early or place == at:
            wanted = "before this one" if late else "after this one" if early else "at another message"
            yield {"part": "order", "place": other, "wanted": wanted, "found": place, "similarity": 0.0}


def find_earlier(id_: str, all_: Sequence[Milestone]) -> set[str]:
    """Return the ids of all milestones that must be reached before one."""
    after = {each.id: each.after for each in all_}
    found: set[str] = set()
    open_ = [id_]
    while open_:
        new = set(after.get(open_.pop(), ())) - found
        found |= new
        open_ += new
    return found


def mean(similarities: Sequence[float]) -> float | None:
    """Return the mean, or None for an empty list."""
    return math.fsum(similarities) / len(similarities) if similarities else None


class _Similarities:
    """Similarities of milestones, by number, to snapshots; `most` assumes the best snapshots of all references."""

    def __init__(self, milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> None:
        check_installed()
        self._milestones, self._trajectory = milestones, trajectory
        self._numbers = {each.id: index for index, each in enumerate(milestones)}
        self._factors: dict[tuple[int, int | None], list[float]] = {}
        self._rows: dict[tuple[int, tuple[int | None, ...]], list[float]] = {}
        self.references = [sorted(self._numbers[name] for name in each.references) for each in milestones]
        self.stands_for = {index: self._merge(index) for index in {each for all_ in self.references for each in all_}}
        after = {index: {self._numbers[name] for name in each.after} for index, each in enumerate(milestones)}
        before: dict[int, frozenset[int]] = {}
        for index in TopologicalSorter(after).static_order():
            before[index] = frozenset(after[index].union(*(before[each] for each in after[index])))
        self.before = [before[index] for index in after]
        self.most = [self._best_row(index) for index in range(len(milestones))]

    def assign(self) -> dict[int, int]:
        """Return the best assignment regardless of order and references."""
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(self.most, maximize=True)
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return {row: column for row, column in pairs if self.most[row][column] > 0}

    def row(self, index: int, seen: Mapping[int, int]) -> list[float]:
        """Return a milestone's similarity to each snapshot, for given matches of its references."""
        key = index, tuple(map(seen.get, self.references[index]))
        if key not in self._rows:
            factors = [
                self._factor(each, 0 if (number := self._find_number(each)) is None else seen.get(number))
                for each in self._milestones[index].constraints
            ]
            self._rows[key] = self._multiply(index, factors)
        return self._rows[key]

    def similarity(self, index: int, places: Mapping[int, int]) -> float:
        """Return the similarity of a milestone to its snapshot, 0 without one."""
        if index not in places:
            return 0.0
        # the representative of the reference's snapshot
        seen = {each: self.stands_for[each][places[each]] for each in self.references[index] if each in places}
        return self.row(index, seen)[places[index]]

    def is_allowed(self, places: Mapping[int, int]) -> bool:
        """Return whether an assignment keeps the order, and its references do not lower a similarity."""
        return all(
            all(places.get(before, -1) < place for before in self.before[index])
            and self.similarity(index, places) >= self.most[index][place] - _NOISE
            for index, place in places.items()
        )

    def _find_number(self, constraint: Constraint) -> int | None:
        return self._numbers.get(constraint.reference or "")

    def _factor(self, constraint: Constraint, place: int | None) -> list[float]:
        """Return a constraint's similarity to each snapshot, for one match of its reference."""
        if (key := (id(constraint), place)) not in self._factors:
            firsts = range(len(self._trajectory)) if constraint.permits else self._firsts(constraint.table)
            then = None if place is None else self._trajectory[place]
            values = {at: constraint.compare(self._trajectory[at], then) for at in {*firsts}}
            self._factors[key] = [values[at] for at in firsts]
        return self._factors[key]

    def _firsts(self, table: str) -> list[int]:
        """Return for each snapshot the first one with the same object as table: most messages change no table."""
        seen: dict[int, int] = {}
        return [seen.setdefault(id(each.get(table, ())), at) for at, each in enumerate(self._trajectory)]

    def _multiply(self, index: int, factors: Sequence[Sequence[float]]) -> list[float]:
        count = sum(each.kind != "guardrail" for each in self._milestones[index].constraints)
        columns = zip(*factors, strict=True) if factors else ((),) * len(self._trajectory)
        return [math.prod(column) ** (1 / max(count, 1)) for column in columns]

    def _best_row(self, index: int) -> list[float]:
        best = []
        for constraint in self._milestones[index].constraints:
            number = self._find_number(constraint)
            places = [0] if number is None else [None, *sorted({*self.stands_for[number]})]
            columns = zip(*(self._factor(constraint, place) for place in places), strict=True)
            best.append([max(column) for column in columns])
        return self._multiply(index, best)

    def _merge(self, index: int) -> list[int]:
        name = self._milestones[index].id
        using = [one for each in self._milestones for one in each.constraints if one.reference == name]
        tables = sorted({each.table for each in using} | {MESSAGE for each in using if each.fill is not None})
        firsts: dict[tuple[int, ...], int] = {}
        kinds = zip(*map(self._firsts, tables), strict=True)
        return [firsts.setdefault(kind, at) for at, kind in enumerate(kinds)]


def _search(table: _Similarities, *, widest: int, floor: float) -> tuple[dict[int, int], float, bool]:
    """Return the best mapping with a sum above the floor, its sum, and whether no state was dropped."""
    ahead = [[*accumulate(reversed(row), max, initial=0.0)][::-1] for row in table.most]
    layer: dict[tuple[frozenset[int], Seen], tuple[float, dict[int, int]]] = {(frozenset(), ()): (0.0, {})}
    exact = True
    for at in range(len(table.most[0])):
        wider = dict(layer)
        for (decided, seen), (total, places) in layer.items():
            known = dict(seen)
            for index, before in enumerate(table.before):
                if index in decided or not (similarity := table.row(index, known)[at]):
                    continue
                more = decided | before | {index}
                key = more, _find_needed(table, {**places, index: at}, more)
                if total + similarity > wider.get(key, (-1.0,))[0]:
                    wider[key] = total + similarity, {**places, index: at}
        bounds = {
            key: total + math.fsum(row[at + 1] for index, row in enumerate(ahead) if index not in key[0])
            for key, (total, _) in wider.items()
        }
        kept = sorted((key for key, bound in bounds.items() if bound > floor), key=lambda key: -bounds[key])
        exact = exact and len(kept) <= widest
        layer = {key: wider[key] for key in kept[:widest]}
    total, places = max(layer.values(), key=lambda one: one[0], default=(floor, {}))
    return places, total, exact


def _find_needed(table: _Similarities, places: Mapping[int, int], decided: frozenset[int]) -> Seen:
    """Return a key for the snapshots of matched milestones to which undecided ones refer."""
    needed = {each for index, all_ in enumerate(table.references) if index not in decided for each in all_}
    return tuple((each, table.stands_for[each][places[each]]) for each in sorted(needed) if each in places)
