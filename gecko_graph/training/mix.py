"""Choose the ids of the next data set: errors, variants, mastered rows of high perplexity, new seeds (equation 5)."""

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
"""Table 4: ignore perplexity; verify no label; no variants; replace variants by mastered rows, or by errors."""

FIRST = Fraction(13, 20)
"""The share of the seeds in the first data set."""
FRESH = (Fraction(4, 13), Fraction(2, 13), Fraction(1, 13))
"""New seeds of the later data sets, as shares of the first one (table 3: 5,632, 2,816, 1,408 of 18,304)."""


class Chosen(NamedTuple):
    """A row of the next data set: its id, its role, and how often it was chosen before."""

    id: str
    part: Part
    again: int = 0


@dataclass(kw_only=True, slots=True)
class MixFindings:
    """An iteration's findings on its data set, as row ids.

    Args:
        errors: Rows whose label is right and whose output is wrong, or whose label was replaced by the output: the
            error seeds.
        corrected: The error seeds whose label was replaced.
        variants: New rows, each with its error seed.
        mastered: Rows that need no more training, with their perplexity; None is unknown, and never high.
        matched: Rows whose label the output matches.
        mismatched: All other rows.
    """

    errors: list[str] = field(default_factory=list)
    corrected: set[str] = field(default_factory=set)
    variants: list[tuple[str, str]] = field(default_factory=list)
    mastered: list[tuple[str, float | None]] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, judged: Iterable[Any], variants: Iterable[Any], *, both_correct: bool) -> MixFindings:
        """Return the findings on judged rows and variants; `both_correct` also counts other right outputs."""
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
        """Return the findings without label verification: as many errors, drawn from the mismatched rows."""
        errors = _some(self.mismatched, len(self.errors), Random(f"unjudged {seed}"))
        matched = {*self.matched}
        mastered = [each for each in self.mastered if each[0] in matched]
        return replace(self, errors=errors, corrected=set(), mastered=mastered)


def draw_seeds(ids: Sequence[str], seed: int) -> list[list[str]]:
    """Return the seeds of the first data set, then the new seeds of each later one; each seed once."""
    drawn = list(ids)
    Random(f"seeds {seed}").shuffle(drawn)
    first = round(len(drawn) * FIRST)
    left = iter(drawn)
    return [list(islice(left, size)) for size in (first, *(round(first * share) for share in FRESH))]


def mix(
    found: MixFindings, fresh: Sequence[str], total: int, ablation: Ablation | None = None, seed: int = 0
) -> list[Chosen]:
    """Return the rows of the next data set: at most `total`, and exactly so many if enough rows are mastered.

    If errors and variants are too many, variants are thinned evenly over their seeds; errors only if they alone are too
    many. An ablation keeps the sizes of the full mix, except `no-expansion`, which has no variants. For `no-judge` pass
    `MixFindings.without_judge`.
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
    """Return at most `room` variants, one of each seed before a second of any."""
    turns, ranked = Counter[str](), list[tuple[int, str]]()
    for id_, seed in variants:
        turns[seed] += 1
        ranked.append((turns[seed], id_))
    kept = {id_ for _, id_ in sorted(ranked, key=lambda each: each[0])[: max(room, 0)]}
    return [id_ for id_, _ in variants if id_ in kept]


def _some(ids: Sequence[str], size: int, rng: Random) -> list[str]:
    if len(ids) <= size:
        return list(ids)
    drawn = set(rng.sample(range(len(ids)), max(size, 0)))
    return [id_ for at, id_ in enumerate(ids) if at in drawn]
