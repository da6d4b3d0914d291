"""Intervals: against published values, and by their properties."""

from __future__ import annotations

from math import isnan
from statistics import median

import pytest

from evals.harness.statistics import bootstrap, exponent, mean_interval, student, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [  # R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(hits, n, low, high):
    assert wilson(hits, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (10, 2.2281)])
def test_students_quantile_is_the_tables(degrees, quantile):
    assert student(0.975, degrees) == pytest.approx(quantile, rel=0.01)
    assert student(0.025, degrees) == pytest.approx(-quantile, rel=0.01)


def test_mean_interval_is_the_textbooks():
    # eight values with mean 5 and standard deviation 2.138
    assert mean_interval([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx((5, 3.2125, 6.7875), abs=0.01)


@pytest.mark.parametrize("interval", [mean_interval, lambda values: bootstrap(values, median)])
def test_one_value_has_no_interval_and_none_has_no_value(interval):
    assert all(map(isnan, interval([])))
    value, low, high = interval([3.0])
    assert value == 3.0
    assert isnan(low)
    assert isnan(high)


def test_exponent_finds_the_power_and_doubts_noise():
    clean = exponent([(x, 3 * x**1.5) for x in (1, 10, 100, 1000)])
    assert clean == pytest.approx((1.5, 1.5, 1.5))
    noisy = exponent([(1, 1), (10, 30), (100, 80), (1000, 1500)])
    assert noisy.low < 1.02 < noisy.high
    assert noisy.high - noisy.low > 0.3
