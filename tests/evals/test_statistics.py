"""Intervals: against published values, and by their properties."""

from __future__ import annotations

import random
from math import inf, isnan, sqrt
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.harness.statistics import bootstrap, exponent, mean_interval, student, wilson

NUMBERS = st.floats(-1e6, 1e6)


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


@given(st.integers(0, 5000), st.data())
def test_wilson_holds_the_rate_within_bounds(n, data):
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= high <= 1
    assert n == 0 or low <= hits / n <= high
    mirrored = wilson(n - hits, n)
    assert (1 - high, 1 - low) == (pytest.approx(mirrored[0], abs=1e-12), pytest.approx(mirrored[1], abs=1e-12))


def test_wilson_solves_its_equation():
    for end in wilson(37, 90):
        assert abs(37 / 90 - end) == pytest.approx(1.959964 * sqrt(end * (1 - end) / 90), abs=1e-6)


def test_wilson_covers_the_truth():
    dice = random.Random(1)
    held = 0
    for _ in range(2000):
        low, high = wilson(sum(dice.random() < 0.93 for _ in range(60)), 60)
        held += low <= 0.93 <= high
    assert 0.93 <= held / 2000 <= 0.985


def test_more_hits_than_cases_are_a_bug():
    with pytest.raises(ValueError, match="3 hits of 2"):
        wilson(3, 2)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (30, 2.0423)],
)
def test_students_quantile_is_the_tables(degrees, quantile):
    assert student(0.975, degrees) == pytest.approx(quantile, rel=0.01)
    assert student(0.025, degrees) == pytest.approx(-quantile, rel=0.01)


def test_students_quantile_becomes_the_normal_one():
    assert student(0.975, 100_000) == pytest.approx(1.95996, abs=1e-3)
    with pytest.raises(ValueError, match="0 degrees"):
        student(0.975, 0)


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


@given(st.lists(NUMBERS, min_size=2, max_size=40))
def test_intervals_hold_their_estimate(values):
    low_end, high_end = min(values), max(values)
    value, low, high = mean_interval(values)
    assert low <= value <= high
    value, low, high = bootstrap(values, median)
    assert low_end <= low <= high <= high_end


def test_bootstrap_is_the_same_for_the_same_seed_and_near_the_textbooks():
    dice = random.Random(0)
    values = [dice.gauss(10, 2) for _ in range(100)]
    one = bootstrap(values, fmean, seed=3)
    assert one == bootstrap(values, fmean, seed=3) != bootstrap(values, fmean, seed=4)
    assert one == pytest.approx(mean_interval(values), abs=0.12)


def test_exponent_finds_the_power_and_doubts_noise():
    clean = exponent([(x, 3 * x**1.5) for x in (1, 10, 100, 1000)])
    assert clean == pytest.approx((1.5, 1.5, 1.5))
    noisy = exponent([(1, 1), (10, 30), (100, 80), (1000, 1500)])
    assert noisy.low < 1.02 < noisy.high
    assert noisy.high - noisy.low > 0.3


@given(st.floats(-3, 3), st.floats(0.01, 100), st.lists(st.floats(0.1, 1e4), min_size=3, max_size=9, unique=True))
def test_exponent_of_a_pure_power(power, factor, places):
    if max(places) / min(places) > 1.5:
        assert exponent([(x, factor * x**power) for x in places]).value == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("points", [[], [(1, 1)], [(2, 1), (2, 5)], [(0, 1), (-1, 1), (inf, 1)]])
def test_exponent_of_nothing_is_unknown(points):
    assert isnan(exponent(points).value)


def test_two_points_have_a_slope_without_an_interval():
    slope = exponent([(1, 1), (10, 100)])
    assert slope.value == pytest.approx(2)
    assert isnan(slope.low)
