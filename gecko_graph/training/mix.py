"""The next data set of ids alone: errors, their variants, mastered rows of high perplexity, new seeds (equation 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, cycle, islice
from random import Random
from typing import Any, Literal, NamedTuple

Part = Literal["first", "error", "corrected", "variant", "mastered", "fresh", "repeated"]
Ablation = Literal["no-high-ppl", "no-judge", "no-expansion", "high-ppl-replace", "repeat-errors"]
"""Table 4: perplexity does not count; no label is verified; no variants; mastered rows, or errors, in their place."""

FIRST = Fraction(13, 20)
"""The first data set's share of the seeds."""
FRESH = (Fraction(4, 13), Fraction(2, 13), Fraction(1, 13))
"""New seeds of the data sets that follow, as shares of the first one (table 3: 5,632, 2,816, 1,408 of 18,304)."""


class Chosen(NamedTuple):
    """A row of the next data set: its id, its role, and how often it was taken before."""

    id: str
    part: Part
    again: int = 0


@dataclass(kw_only=True, slots=True)
class MixFindings:
    """An iteration's findings on its data set, by the rows' ids.

    Args:
        errors: Rows whose label stands though the model failed, or that now have the model's: the error seeds.
        corrected: Those of them that have the model's.
        variants: New rows, with the error seed that each was written from.
        mastered: Rows that need no more training, with their perplexity; None is unknown, and never high.
        matched: Rows whose label the model has met.
        mismatched: All others.
    """

    errors: list[str] = field(default_factory=list)
    corrected: set[str] = field(default_factory=set)
    variants: list[tuple[str, str]] = field(default_factory=list)
    mastered: list[tuple[str, float | None]] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, judged: Iterable[Any], variants: Iterable[Any], *, both_correct: bool) -> MixFindings:
        """Return the findings of judged rows and variants; with `both_correct` other right outputs count."""
        found = cls(variants=[(row["id"], row["from"][-1]["variant_of"]) for row in variants])
        for row in judged:
            outcome = row["verdict"]["outcome"]
            (found.matched if outcome == "MASTERED" else found.mismatched).append(row["id"])
            if outcome == "MASTERED" or (outcome == "BOTH_CORRECT" and both_correct):
                found.mastered.append((row["id"], row["verdict"]["perplexity"]))
            elif outcome in ("PRED_WRONG", "LABEL_WRONG"):
                found.errors.append(row["id"])
                found.corrected |= {row["id"]} if outcome == "LABEL_WRONG" else set()
        return found

    def without_judge(self, seed: int) -> MixFindings:
        """Return the findings if no label is verified: as many of the rows whose label was not met are errors."""
        errors = _some(self.mismatched, len(self.errors), Random(f"unjudged {seed}"))
        matched = {*self.matched}
        mastered = [each for each in self.mastered if each[0] in matched]
        return replace(self, errors=errors, corrected=set(), mastered=mastered)


def draw_seeds(ids: Sequence[str], seed: int) -> list[list[str]]:
    """Return the seeds of the first data set, and the new ones of each that follows; each seed once."""
    drawn = list(ids)
    Random(f"seeds {seed}").shuffle(drawn)
    first = round(len(drawn) * FIRST)
    left = iter(drawn)
    return [list(islice(left, size)) for size in (first, *(round(first * share) for share in FRESH))]


def mix(
    found: MixFindings, fresh: Sequence[str], total: int, ablation: Ablation | None = None, seed: int = 0
) -> list[Chosen]:
    """Return the rows of the next data set: at most `total`, and as many where enough are mastered.

    Where errors and variants overflow, variants are thinned evenly over their seeds, and errors only if they do
    alone. An ablation keeps the sizes of the full mix, but for `no-expansion`, which has no variants in it; for
    `no-judge` what is given is `Found.without_judge`.
    """
    rng = Random(f"mix {seed}")
    room = total - len(fresh)
    errors = _some(found.errors, room, rng)
    variants = thin(found.variants, room - len(errors))
    ranked = [id_ for id_, value in sorted(found.mastered, key=lambda each: -(each[1] or 0)) if value is not None]
    rest = room - len(errors) - len(variants)
    mastered = ranked[:rest]
    more: Iterator[Chosen] = (Chosen(id_, "variant") for id_ in variants)
    if ablation == "no-high-ppl":
        mastered = _some(found.matched, len(mastered), rng)
    elif ablation == "no-expansion":
        more = iter(())
    elif ablation == "high-ppl-replace":
        more = (Chosen(id_, "mastered") for id_ in ranked[rest : rest + len(variants)])
    elif ablation == "repeat-errors":
        more = (
            Chosen(id_, "repeated", at // len(errors) + 1)
            for at, id_ in enumerate(islice(cycle(errors), len(variants)))
        )
    taken = (Chosen(id_, "corrected" if id_ in found.corrected else "error") for id_ in errors)
    others = (Chosen(id_, "mastered") for id_ in mastered), (Chosen(id_, "fresh") for id_ in fresh)
    return [*chain(taken, more, *others)]


def thin(variants: Sequence[tuple[str, str]], room: int) -> list[str]:
    """Return as many variants as there is room for, one of each seed before a second of any."""
    turns, ranked = Counter[str](), list[tuple[int, str]]()
    for id_, seed in variants:
        turns[seed] += 1
        ranked.append((turns[seed], id_))
    kept = {id_ for _, id_ in sorted(ranked, key=lambda each: each[0])[: max(room, 0)]}
    return [id_ for id_, _ in variants if id_ in kept]


def _some(ids: Sequence[str], size: int, rng: Random) -> list[str]:
    """Return ids in their order; a drawn part of them if they are more."""
    if len(ids) <= size:
        return list(ids)
    drawn = set(rng.sample(range(len(ids)), max(size, 0)))
    return [id_ for at, id_ in enumerate(ids) if at in drawn]
