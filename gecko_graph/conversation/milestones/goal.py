"""What must and must not happen in a conversation, and its score (ToolSandbox, section 2.3, equations 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired

from typing_extensions import TypedDict

from ...state import VERSION
from .constraints import Milestone, Reached
from .matching import match
from .tables import Snapshot

FAINT = 0.5
"""A minefield less alike than this was not stepped on: one word in common is no offence."""


class Score(TypedDict):
    """The score of one conversation.

    `similarity` is None without milestones: nothing was asked of the agent, and nothing is known of it.
    """

    v: int
    similarity: float | None
    milestone_similarity: float | None
    minefield_similarity: float
    milestones: list[Reached]
    minefields: list[Reached]
    inexact: NotRequired[bool]
    """True where there were too many orders to look at all: the true score may be higher."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What must and must not happen: milestones and minefields, each in the order of their edges."""

    milestones: tuple[Milestone, ...] = ()
    minefields: tuple[Milestone, ...] = ()

    @property
    def tables(self) -> list[str]:
        """Names of the tables that it looks at."""
        both = (*self.milestones, *self.minefields)
        return list(dict.fromkeys(each.table for one in both for each in one.constraints))

    def score(self, trajectory: Sequence[Snapshot]) -> Score:
        """Score a conversation (equations 1 and 2): one snapshot for each message, from the user's first one on.

        Each snapshot is matched to one milestone at most, every milestone counts, what comes before the first
        milestone is guarded too, and a minefield is stepped on where its similarity is `FAINT` or more.
        """
        reached, exact = _match(self.milestones, trajectory)
        stepped, sure = _match(self.minefields, trajectory)
        plus = _mean([each["similarity"] for each in reached])
        minus = _mean([each["similarity"] * (each["similarity"] >= FAINT) for each in stepped]) or 0.0
        score: Score = {
            "v": VERSION,
            "similarity": 0.0 if minus else plus,
            "milestone_similarity": plus,
            "minefield_similarity": minus,
            "milestones": reached,
            "minefields": stepped,
        }
        return score if exact and sure else {**score, "inexact": True}


def _match(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> tuple[list[Reached], bool]:
    reached, exact = match([each for each in milestones if not each.last], trajectory)
    found = {each["id"]: each for each in reached}
    for each in milestones:
        if each.last:
            at = len(trajectory) - 1
            similarity = each.compare(trajectory, at, {}) if trajectory else 0.0
            found[each.id] = {"id": each.id, "similarity": similarity, "snapshot": at if trajectory else None}
    return [found[each.id] for each in milestones], exact


def _mean(similarities: Sequence[float]) -> float | None:
    return math.fsum(similarities) / len(similarities) if similarities else None
