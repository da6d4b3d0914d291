"""Find rules: the condition that separates the rows of one kind from successful ones, with its evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import comb, log2
from typing import Any

from ..state import Json, JsonObject
from ..values.observation import HOLE
from ..values.places import as_text
from .conditions import TIERS, TRUSTED, Condition, Documented, conjoined, constants, places
from .terms import Term

EXCEPTIONS = 0.04
"""Tolerated share of exceptions to a prediction; each is named."""

PROPOSED, ESTABLISHED = 3, 10
"""Number of rows from which a rule is proposed, and from which a rule of a trusted kind may refuse."""

CHANCE, SURE = 0.05, 0.001
"""Probability that any of the conditions fits the rows by accident, below which it is reported, and may refuse."""

STARTS, PERHAPS = 2, "perhaps refused: "
MOST_RIVALS, MOST_RULES, MOST_CONJOINED, SPOKEN, HALF = 5, 4, 3, 3, 0.5


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on calls; calls that break it are refused.

    Args:
        best: The condition.
        rivals: Other conditions of its tier that fit the same rows.
        rows: Bits of the refusals that it explains.
        evidence: The evidence, as in the file.
    """

    best: Condition
    rivals: Sequence[Condition]
    rows: int
    evidence: JsonObject = field(compare=False)

    def within(self, rows: int) -> Rule:
        """Return the rule restricted to these rows; evidence of other rows only proposes it."""
        best, *rivals = (one.within(rows) for one in (self.best, *self.rivals))
        status = "refuted" if self.evidence["against"] else "proposed"
        kept = {key: each for key, each in self.evidence.items() if key != "lacks"}
        return Rule(best, rivals, self.rows & rows, {**kept, "status": status})


@dataclass(slots=True)
class Sample:
    """The rows of a tool as bits: the successful ones, and the start state of each."""

    lawful: int
    names: Sequence[str]
    starts: Sequence[str]
    terms: Sequence[Term]
    conditions: Sequence[Condition]
    documented: Documented = field(default_factory=dict)

    @property
    def every(self) -> int:
        return (1 << len(self.names)) - 1

    def named(self, rows: int, most: int = 16) -> list[str]:
        return [self.names[at] for _, at in zip(range(most), places(rows), strict=False)]


def find_rules(sample: Sample, failed: int, about: Collection[str] = ()) -> tuple[list[Rule], int]:
    """Return the rules that explain refusals of one kind, and the unexplained refusals.

    Args:
        sample: All rows.
        failed: The refusals of this kind.
        about: Words of its message; among equal conditions those that mention more of them are preferred.
    """
    rules: list[Rule] = []
    left = failed
    while left.bit_count() >= PROPOSED and left.bit_count() > EXCEPTIONS * failed.bit_count():
        rule = (_find_rule(sample, left, about) or _conjoin(sample, left, about)) if len(rules) < MOST_RULES else None
        if rule is None:
            break
        rules.append(rule)
        left &= ~rule.rows
    return rules, left


def _find_rule(sample: Sample, failed: int, about: Collection[str]) -> Rule | None:
    """Return the rule that explains most of the refusals; trusted tiers precede rules with constants."""
    pool = [*sample.conditions, *constants(sample.terms, failed, sample.lawful, sample.documented, about)]
    beside: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for one in pool:
        for level, count in product(range(one.level, 2), range(min(one.speaks(about), SPOKEN) + 1)):
            beside.setdefault((level, count), set()).add((one.true, one.known))
    whole = (1 - EXCEPTIONS) * failed.bit_count()

    def chance(one: Condition, hit: int) -> float:
        rows = hit.bit_count(), failed.bit_count(), (sample.lawful & one.known).bit_count()
        return chance_of(*rows, len(beside[one.level, min(one.speaks(about), SPOKEN)]))

    fitting = [(one, hit) for one in pool if (hit := _hits(sample, one, failed))]
    # numeric comparisons are true by accident too often to explain only a part
    told = [
        (one, hit)
        for one, hit in fitting
        if (one.kind != "comparison" or hit.bit_count() >= whole) and chance(one, hit) <= CHANCE
    ]
    if not told:
        return None

    def rank(pair: tuple[Condition, int]) -> tuple[bool, int, int, int, int, str]:
        one, hit = pair
        against, is_whole = (sample.lawful & one.fails).bit_count(), hit.bit_count() >= whole
        # prefer one that explains (almost) all, by the simplest kind; else the one that explains most
        first = TIERS[one.kind] if is_whole else -hit.bit_count()
        return not is_whole, first, against, -one.speaks(about), one.cost, one.check

    best, rows = min(told, key=rank)
    rivals = [
        one
        for one, hit in sorted(fitting, key=lambda pair: (pair[0].cost, pair[0].check))
        if one is not best
        and TIERS[one.kind] <= TIERS[best.kind]
        and one.cost <= best.cost + (best.kind in TRUSTED)
        and hit & rows == rows
        and not sample.lawful & one.fails
    ]
    # "must not be in one place" may stand for "is missing in another"
    is_turned = best.kind == "membership" and best.check.startswith("not (")
    is_sure = rows.bit_count() >= (1 - EXCEPTIONS) * (failed & best.known).bit_count() and not is_turned
    return Rule(
        best, rivals[:MOST_RIVALS], rows, _evidence(sample, best, rows, chance(best, rows), len(rivals), is_sure)
    )


def _conjoin(sample: Sample, failed: int, about: Collection[str]) -> Rule | None:
    """Return a rule of several conditions for refusals that no single one explains; it never refuses."""
    region = find_region(sample, failed, sample.lawful, about)
    if region is None:
        return None
    rows, true = region.true & failed, sample.every & ~region.true
    tried = len({(one.true, one.known) for one in sample.conditions}) ** max(1, len(region.parts))
    chance = chance_of(rows.bit_count(), failed.bit_count(), sample.lawful.bit_count(), tried)
    if chance > 1:  # too likely to fit by accident
        return None
    best = Condition(f"not ({region.whole})", "conjunction", true, sample.every, region.cost)
    return Rule(best, (), rows, _evidence(sample, best, rows, chance, 0, False))


def _hits(sample: Sample, one: Condition, failed: int) -> int:
    """Return the refusals that a condition explains, 0 if successful rows contradict it."""
    known, hit = sample.lawful & one.known, failed & one.fails
    is_clear = (known & ~one.true).bit_count() <= EXCEPTIONS * known.bit_count()
    return hit if is_clear and hit.bit_count() >= PROPOSED else 0


def chance_of(rows: int, failed: int, lawful: int, pool: int) -> float:
    """Return the probability that a condition of `pool`, false in `rows` rows, is true in all others by accident."""
    return pool * (comb(failed, rows) / comb(failed + lawful, rows))


def weigh(kind: str, rows: int, starts: int, against: Sequence[str], *, is_clear: bool, **more: Any) -> JsonObject:
    """Return the evidence for a rule, with its status.

    `lacks` is the number of further refusals that would establish it, if nothing else is missing.

    Args:
        kind: Its form.
        rows: The number of refusals that it explains.
        starts: The number of distinct start states.
        against: The successful calls that it would refuse.
        is_clear: Whether nothing suggests an accident.
        more: Further keys.
    """
    is_trusted = kind in TRUSTED and starts >= STARTS and is_clear and not against
    lacks = max(0, ESTABLISHED - rows)
    status = "refuted" if against else "established" if is_trusted and not lacks else "proposed"
    found: JsonObject = {"kind": kind, "for": rows, "against": [*against], **more, "starts": starts, "status": status}
    return {**found, "lacks": lacks} if is_trusted and lacks else found


def said(error: Json, evidence: JsonObject) -> JsonObject:
    """Return a rule's verdict on a call that breaks it: refused if it is established, else perhaps."""
    is_sure = evidence["status"] == "established"
    return refused_by(error) if is_sure else {"pass": f"{PERHAPS}{as_text(error)}"}


def refused_by(error: Json) -> JsonObject:
    """Return the refusal by this error; an error with holes is open."""
    return {"open" if HOLE in as_text(error) else "error": error}


def _evidence(sample: Sample, best: Condition, rows: int, chance: float, rivals: int, is_sure: bool) -> JsonObject:
    lawful = sample.lawful & best.known
    # it may be an accident of these states if most successful calls do not decide it, or it explains only a part
    is_clear = 2 * lawful.bit_count() >= sample.lawful.bit_count() and chance <= SURE and is_sure
    return weigh(
        best.kind,
        rows.bit_count(),
        len({sample.starts[at] for at in places(rows)}),
        sample.named(sample.lawful & best.fails),
        is_clear=is_clear,
        lawful=(lawful & best.true).bit_count(),
        chance=float(f"{chance:.1e}"),
        rivals=rivals,
    )


def find_region(sample: Sample, inside: int, outside: int, about: Collection[str] = ()) -> Condition | None:
    """Return a conjunction that is true for many rows of `inside` and (almost) none of `outside`, else None.

    It grows by the condition with the highest gain. If it could exclude all of `outside` by accident, it is used only
    if it covers half of the rows; the others are then unknown.
    """
    every = [*sample.conditions, *constants(sample.terms, outside, inside, sample.documented, about)]
    pool, chosen = [one for one in every if not one.is_open], list[Condition]()
    rows, others = inside, outside
    while rows and others.bit_count() > EXCEPTIONS / 2 * min(rows.bit_count(), outside.bit_count()):
        found = [
            (_gain(one, rows, others), one.speaks(about), -TIERS[one.kind], -one.cost, one.check, one) for one in pool
        ]
        gain, *_, best = max(found, key=lambda each: each[:5], default=(0, None))
        if best is None or len(chosen) == MOST_CONJOINED or gain <= 0:
            return None
        chosen.append(best)
        rows, others = rows & best.true, others & best.true
    share = rows.bit_count() / max(inside.bit_count(), 1)
    is_telling = share >= HALF or (1 - share) ** outside.bit_count() * len(pool) <= CHANCE
    return conjoined(chosen, sample.every) if chosen and rows.bit_count() >= PROPOSED and is_telling else None


def _gain(one: Condition, rows: int, others: int) -> float:
    kept, odd = (rows & one.true).bit_count(), (others & one.true).bit_count()
    if not kept:
        return 0.0
    return kept * (log2(kept / (kept + odd)) - log2(rows.bit_count() / (rows.bit_count() + others.bit_count())))
