"""Rules: the condition that separates the rows of one kind from lawful ones, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, lgamma

from ..state import JsonObject
from .conditions import TIERS, TRUSTED, Condition, constants
from .terms import Term

EXCEPTIONS = 0.04
"""Share of odd rows that do not end a prediction; each is named."""

PROPOSED, ESTABLISHED = 3, 10
"""Rows from which a rule is spoken of, and from which it may refuse if its kind is trusted."""

CHANCE = 0.05
"""Chance that one of so many conditions would fit so many rows by accident, below which it is believed."""

STARTS = 2
MOST_RIVALS, MOST_RULES, MOST_CONJOINED = 5, 4, 3


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of a call, or it is refused.

    Args:
        best: The condition.
        rivals: Others of its tier that fit the same rows.
        rows: Bits of the refusals that it explains.
        against: Bits of the lawful rows that break it.
        evidence: As it stands in the file.
    """

    best: Condition
    rivals: Sequence[Condition]
    rows: int
    against: int
    evidence: JsonObject = field(compare=False)

    @property
    def status(self) -> str:
        """`proposed`, `established` or `refuted`."""
        return str(self.evidence["status"])


@dataclass(slots=True)
class Sample:
    """The rows of a tool as bits: the lawful ones, and by what start each began."""

    lawful: int
    names: Sequence[str]
    starts: Sequence[str]
    terms: Sequence[Term]
    conditions: Sequence[Condition]

    def started(self, rows: int) -> int:
        """Return in how many different states these rows began."""
        return len({self.starts[at] for at in places(rows)})

    def named(self, rows: int, most: int = 5) -> list[str]:
        """Return the digests of some of these rows."""
        return [self.names[at] for _, at in zip(range(most), places(rows), strict=False)]


def places(rows: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while rows:
        low = rows & -rows
        yield low.bit_length() - 1
        rows ^= low


def find_rules(sample: Sample, failed: int, *, least: int = PROPOSED) -> tuple[list[Rule], int]:
    """Return the rules that explain refusals of one kind, and the refusals that none explains."""
    rules: list[Rule] = []
    left = failed
    for _ in range(MOST_RULES):
        rule = _find_rule(sample, left, least) if left.bit_count() >= least else None
        if rule is None:
            break
        rules.append(rule)
        left &= ~rule.rows
        if left.bit_count() <= EXCEPTIONS * failed.bit_count():
            break
    return rules, left


def _find_rule(sample: Sample, failed: int, least: int) -> Rule | None:
    """Return the rule that explains most of the refusals: of the trusted tiers, before one with constants."""
    more = list(constants(sample.terms, failed, sample.lawful)) if sample.lawful else []
    fitting = [(one, hit) for one in [*sample.conditions, *more] if (hit := _hits(sample, one, failed, least))]
    if not fitting:
        return None
    whole = (1 - EXCEPTIONS) * failed.bit_count()

    def rank(pair: tuple[Condition, int]) -> tuple[bool, int, int, int, str]:
        one, hit = pair
        against = (sample.lawful & one.fails).bit_count()
        # one that explains (nearly) all, by the plainest kind; else the one that explains most
        return (
            hit.bit_count() < whole,
            TIERS[one.kind] if hit.bit_count() >= whole else -hit.bit_count(),
            against,
            one.cost,
            one.check,
        )

    best, rows = min(fitting, key=rank)
    chance = chance_of(
        rows.bit_count(),
        failed.bit_count(),
        sample.lawful.bit_count(),
        len({(c.true, c.known) for c, _ in fitting} | {(c.true, c.known) for c in sample.conditions}),
    )
    if chance > CHANCE:
        return None
    if best.kind == "comparison" and rows.bit_count() < whole:
        return None  # numbers happen to be larger than others too often to explain a part
    against = sample.lawful & best.fails
    rivals = [
        one
        for one, hit in sorted(fitting, key=lambda pair: (pair[0].cost, pair[0].check))
        if one is not best
        and TIERS[one.kind] <= TIERS[best.kind]
        and one.cost <= best.cost + (best.kind in TRUSTED)
        and hit & rows == rows
        and not sample.lawful & one.fails
    ]
    return Rule(best, rivals[:MOST_RIVALS], rows, against, _evidence(sample, best, rows, against, chance, len(rivals)))


def _hits(sample: Sample, one: Condition, failed: int, least: int) -> int:
    """Return the refusals that a condition explains, none where lawful rows speak against it or do not know it."""
    lawful, known = sample.lawful & one.known, sample.lawful.bit_count()
    if known and lawful.bit_count() < known / 2:
        return 0
    if (lawful & ~one.true).bit_count() > EXCEPTIONS / 2 * known:
        return 0
    hit = failed & one.fails
    return hit if hit.bit_count() >= least else 0


def chance_of(rows: int, failed: int, lawful: int, pool: int) -> float:
    """Return how probably one of `pool` conditions, false in `rows` rows, is false in no lawful one by accident."""

    def log_choose(n: int, k: int) -> float:
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

    return pool * exp(log_choose(failed, rows) - log_choose(failed + lawful, rows))


def _evidence(sample: Sample, best: Condition, rows: int, against: int, chance: float, rivals: int) -> JsonObject:
    count, starts = rows.bit_count(), sample.started(rows)
    trusted = best.kind in TRUSTED and count >= ESTABLISHED and starts >= STARTS
    status = "refuted" if against else "established" if trusted else "proposed"
    return {
        "kind": best.kind,
        "for": count,
        "lawful": (sample.lawful & best.known & best.true).bit_count(),
        "against": sample.named(against),
        "chance": float(f"{chance:.1e}"),
        "rivals": rivals,
        "starts": starts,
        "status": status,
    }


def separate(sample: Sample, inside: int, outside: int) -> list[Condition]:
    """Return conditions that all hold in these rows, and one of which fails in each of those; or none."""
    allowed = EXCEPTIONS / 2
    fitting = [
        one
        for one in [*sample.conditions, *constants(sample.terms, outside, inside)]
        if (inside & ~(one.known & one.true)).bit_count() <= allowed * inside.bit_count()
    ]
    found: list[Condition] = []
    left = outside
    while left.bit_count() > allowed * outside.bit_count() and len(found) < MOST_CONJOINED:
        hits = [(one, left & one.fails) for one in fitting]
        hits = [(one, hit) for one, hit in hits if hit]
        if not hits:
            return []
        best, hit = min(hits, key=lambda pair: (-pair[1].bit_count(), TIERS[pair[0].kind], pair[0].cost, pair[0].check))
        if chance_of(hit.bit_count(), left.bit_count(), inside.bit_count(), len(fitting)) > CHANCE:
            return []
        found.append(best)
        left &= ~hit
    return found


def find_doubt(sample: Sample, failed: int) -> Condition | None:
    """Return a condition outside of which nearly all of these refusals lie, and as few lawful rows as can be.

    Where nothing explains refusals, calls on their side of it are not known to be lawful.
    """
    best: tuple[float, int, str] | None = None
    found: Condition | None = None
    lawful = sample.lawful.bit_count()
    for one in [*sample.conditions, *constants(sample.terms, failed, sample.lawful)]:
        inside = (sample.lawful & one.known & one.true).bit_count()
        if (failed & one.known & one.true).bit_count() > 0.02 * inside or 2 * inside < lawful or not inside:
            continue
        rank = (-round(inside / lawful, 2), one.cost, one.check)
        if best is None or rank < best:
            best, found = rank, one
    return found
