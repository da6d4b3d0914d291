"""The mapping that ToolSandbox's public code finds, for scores that can be compared with published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from .constraints import Milestone, Reached
from .tables import Snapshot


def match_publicly(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> tuple[list[Reached], bool]:
    """Return the milestones with their snapshots, and True.

    A depth-first search: milestones are placed one after the other, in an order that the edges allow, each at the
    snapshot of the last one or later; of equal similarities the first milestone and the earliest snapshot come first,
    and only a higher sum replaces what was found.
    """
    search = _Search([each for each in milestones if each.linked], trajectory)
    placed: Mapping[str, tuple[int | None, float]] = search.run()
    found = ((each.id, *placed.get(each.id, (None, 0.0))) for each in milestones)
    return [{"id": id_, "similarity": similarity, "snapshot": place} for id_, place, similarity in found], True


_NOISE = 1e-9
"""Sums of the same similarities in another order differ by less."""


class _Search:
    def __init__(self, milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> None:
        self._all, self._trajectory = milestones, trajectory
        self._best, self._found = -1.0, dict[str, tuple[int, float]]()
        self._compare = cache(self._compare_at)
        self._most = cache(self._most_from)

    def run(self) -> Mapping[str, tuple[int, float]]:
        """Return snapshot and similarity by milestone."""
        self._place({}, 0, 0.0)
        return self._found

    def _place(self, placed: dict[str, tuple[int, float]], first: int, total: float) -> None:
        left = [index for index, each in enumerate(self._all) if each.id not in placed]
        if not left:
            if total > self._best:
                self._best, self._found = total, dict(placed)
            return
        bound = total + sum(self._most(index, first) for index in left)
        if bound < self._best - _NOISE or (bound == self._best and bound.is_integer()):
            return
        for similarity, index, place in self._candidates(left, placed, first):
            if total + similarity + len(left) - 1 <= self._best:
                return
            placed[self._all[index].id] = place, similarity
            self._place(placed, place, total + similarity)
            del placed[self._all[index].id]

    def _candidates(
        self, left: Sequence[int], placed: Mapping[str, tuple[int, float]], first: int
    ) -> list[tuple[float, int, int]]:
        found = []
        for index in left:
            each = self._all[index]
            if all(before in placed for before in each.after):
                places = tuple((name, placed[name][0]) for name in sorted(each.references) if name in placed)
                found += [
                    (self._compare(index, place, places), index, place) for place in range(first, len(self._trajectory))
                ]
        return sorted(found, key=lambda one: (-one[0], one[1], one[2]))

    def _compare_at(self, index: int, place: int, places: tuple[tuple[str, int], ...]) -> float:
        return self._all[index].compare(self._trajectory, place, dict(places), reference=True)

    def _most_from(self, index: int, first: int) -> float:
        """Return the most that a milestone can still reach, whatever snapshots its references are matched to."""
        if self._all[index].references:
            return 1.0
        return max(self._compare(index, place, ()) for place in range(first, len(self._trajectory)))
