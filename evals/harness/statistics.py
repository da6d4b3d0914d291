"""Intervals: Wilson's for rates, Student's for means, the bootstrap for medians; and the exponent of growth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import copysign, isfinite, log, nan, pi, sqrt, tan
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple, TypeVar

T = TypeVar("T")

LEVEL = 0.95
"""The confidence level of every interval."""
RESAMPLES = 2000
_MAX_DRAWS = 1_000_000


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval; NaN without data."""

    value: float
    low: float
    high: float


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return a rate's score interval (Wilson, J. Am. Stat. Assoc. 22, 1927, p. 209): good at 0 and for small n."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits of {n}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    p, spread = hits / n, z * z / n
    middle = (p + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(p * (1 - p) / n + spread / (4 * n))
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == n else middle + half)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean with Student's interval, whose ends are NaN for a single value."""
    if not values:
        return Interval(nan, nan, nan)
    middle = fmean(values)
    if len(values) == 1:
        return Interval(middle, nan, nan)
    half = student((1 + LEVEL) / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(middle, middle - half, middle + half)


def bootstrap(values: Sequence[T], of: Callable[[Sequence[T]], float], *, seed: int = 0) -> Interval:
    """Return an estimate with its percentile bootstrap interval (B. Efron, Ann. Stat. 7, 1979)."""
    if not values:
        return Interval(nan, nan, nan)
    if len(values) == 1:
        return Interval(of(values), nan, nan)
    dice = random.Random(seed)
    resamples = max(200, min(RESAMPLES, _MAX_DRAWS // len(values)))
    drawn = sorted(of(dice.choices(values, k=len(values))) for _ in range(resamples))
    tail = (1 - LEVEL) / 2
    return Interval(of(values), drawn[int(tail * (resamples - 1))], drawn[round((1 - tail) * (resamples - 1))])


def clustered(parts: Sequence[tuple[int, int]], *, seed: int = 0) -> Interval:
    """Return a rate counted in clusters of `(hits, n)`, such as each task's writes, with an interval over them.

    It is the bootstrap's, which draws whole clusters. If all or none are hits, the bootstrap would show no uncertainty;
    then it is Wilson's, with one trial per cluster.
    """
    counted = [(hits, n) for hits, n in parts if n]
    hits, n = (sum(each) for each in zip(*counted, strict=True)) if counted else (0, 0)
    if hits in (0, n):
        low, high = wilson(len(counted) if hits else 0, len(counted))
        return Interval(hits / n if n else nan, low, high)

    def rate(drawn: Sequence[tuple[int, int]]) -> float:
        return sum(hits for hits, _ in drawn) / sum(n for _, n in drawn)

    return bootstrap(counted, rate, seed=seed)


def exponent(points: Sequence[tuple[float, float]]) -> Interval:
    """Estimate how y grows with x: the slope of log y over log x by least squares, with Student's interval.

    Two points give a slope without an interval; fewer than two, or equal x, give NaN.
    """
    logs = [(log(x), log(y)) for x, y in points if x > 0 and y > 0 and isfinite(x) and isfinite(y)]
    n = len(logs)
    x_mean, y_mean = (fmean(each) for each in zip(*logs, strict=True)) if n else (nan, nan)
    width = sum((x - x_mean) ** 2 for x, _ in logs)
    if n < 2 or not width:
        return Interval(nan, nan, nan)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in logs) / width
    if n == 2:
        return Interval(slope, nan, nan)
    left = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in logs)
    half = student((1 + LEVEL) / 2, n - 2) * sqrt(left / (n - 2) / width)
    return Interval(slope, slope - half, slope + half)


def student(p: float, degrees: int) -> float:
    """Return a quantile of Student's distribution.

    Exact for one and two degrees of freedom, else by Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5); at
    97.5 % its error is less than 1 %.
    """
    if degrees < 1 or not 0 < p < 1:
        raise ValueError(f"no quantile {p} of Student's distribution with {degrees} degrees of freedom")
    if degrees == 1:
        return tan(pi * (p - 0.5))
    if degrees == 2:
        return copysign(sqrt(2 * (2 * p - 1) ** 2 / (1 - (2 * p - 1) ** 2)), p - 0.5)
    z = NormalDist().inv_cdf(p)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / float(degrees) ** power for power, term in enumerate(terms))
