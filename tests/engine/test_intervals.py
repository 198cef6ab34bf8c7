"""Bounds against the distributions they come from, summed exactly with fractions."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.intervals import LEVEL, least_count, quantile_ranks, rate, share

SHARES = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)


def below(k: int, n: int, p: Fraction) -> Fraction:
    """Chance of fewer than k of n."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(k, n + 1))), Fraction(0))


@given(st.integers(1, 120), SHARES, st.sampled_from([Fraction(9, 10), Fraction(95, 100)]))
@settings(max_examples=80, deadline=None)
def test_ranks_are_the_narrowest_that_an_exact_binomial_allows(
    n: int, q: Fraction, level: Fraction
) -> None:
    found, miss = quantile_ranks(n, float(q), float(level)), (1 - level) / 2
    almost = miss * (1 - Fraction(1, 10**9)), miss * (1 + Fraction(1, 10**9))
    if found.low is None:
        assert below(1, n, q) > almost[0]
    else:
        assert below(found.low, n, q) <= almost[1]
        assert below(found.low + 1, n, q) > almost[0], "no larger rank would do"
    if found.high is None:
        assert 1 - below(n, n, q) > almost[0]
    else:
        assert 1 - below(found.high, n, q) <= almost[1]
        assert found.high == 1 or 1 - below(found.high - 1, n, q) > almost[0]


@given(st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_bounds_of_a_share_leave_half_of_the_miss_on_each_side(hits: int, others: int) -> None:
    count = hits + others
    found = share(hits, count)
    if not count:
        assert found is None
        return
    assert found is not None and found.low <= found.value <= found.high
    miss = (1 - LEVEL) / 2
    if hits:
        assert float(1 - below(hits, count, Fraction(found.low))) == pytest.approx(miss, rel=1e-6)
    else:
        assert found.low == 0
    if others:
        exact = float(below(hits + 1, count, Fraction(found.high)))
        assert exact == pytest.approx(miss, rel=1e-6)
    else:
        assert found.high == 1


@pytest.mark.parametrize(
    ("events", "low", "high"), [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)]
)
def test_bounds_of_a_count_are_those_of_the_tables(events: int, low: float, high: float) -> None:
    found = rate(events, 2.0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low / 2, high / 2), abs=1e-4)


def test_an_upper_bound_exists_from_the_least_count_on() -> None:
    for q in (0.5, 0.9, 0.95, 0.99, 0.999):
        n = least_count(q)
        assert quantile_ranks(n, q).high == n and quantile_ranks(n - 1, q).high is None


def test_the_true_quantile_lies_between_the_ranks_as_often_as_promised() -> None:
    draw = np.random.default_rng(3)
    ranks = quantile_ranks(1_000, 0.95)
    assert ranks.low is not None and ranks.high is not None
    values = np.sort(draw.random((4_000, 1_000)), axis=1)
    held = (values[:, ranks.low - 1] <= 0.95) & (values[:, ranks.high - 1] >= 0.95)
    assert 0.945 < held.mean() < 0.975


def test_millions_are_bounded_as_the_normal_distribution_has_it() -> None:
    n, q = 6_000_000, 0.95
    found, half = quantile_ranks(n, q), 1.96 * math.sqrt(n * q * (1 - q))
    assert found.low is not None and found.high is not None
    assert abs((found.high - found.low) / 2 - half) < 2
    assert abs((found.high + found.low) / 2 - n * q) < 2


def test_what_is_no_quantile_is_refused() -> None:
    for q, count in ((0.0, 5), (1.0, 5), (0.5, -1)):
        with pytest.raises(ValueError, match="want 0 < q < 1"):
            quantile_ranks(count, q)
    with pytest.raises(ValueError, match="3 of 2"):
        share(3, 2)
    assert rate(3, 0.0) is None and quantile_ranks(0, 0.5).high is None
