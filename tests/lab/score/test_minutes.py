"""Quantiles and counts over windows of minutes, judged by numpy on the values themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.lab.score.minutes import (
    BUCKETS,
    LOW_S,
    MIDDLES_S,
    SCALE,
    by_minute,
    over,
    rolling_quantile,
    rolling_sum,
)

WIDTH = 2.0 ** (1 / SCALE)


@given(
    st.lists(st.lists(st.floats(1e-3, 500.0), max_size=30), min_size=1, max_size=12),
    st.integers(1, 6),
    st.sampled_from([0.5, 0.9, 0.99]),
)
@settings(max_examples=60)
def test_a_window_s_quantile_is_numpy_s_within_a_bucket(
    minutes: list[list[float]], window: int, q: float
) -> None:
    minute = np.repeat(np.arange(len(minutes)), [len(m) for m in minutes])
    values = np.array([v for m in minutes for v in m])
    found = rolling_quantile(by_minute(minute, values, len(minutes)), window, q, MIDDLES_S)
    for m in range(len(minutes)):
        held = [v for one in minutes[max(m + 1 - window, 0) : m + 1] for v in one]
        if held:
            exact = float(np.quantile(held, q))
            assert exact / WIDTH <= found[m] <= exact * WIDTH
        else:
            assert np.isnan(found[m])


def test_what_is_over_a_limit_is_counted_within_a_bucket() -> None:
    draw = np.random.default_rng(3)
    values = draw.lognormal(-1, 1, 20_000)
    counts = by_minute(np.zeros(len(values), np.int64), values, 1)
    for limit in (0.1, 0.5, 2.0):
        found = int(over(counts, np.array([limit]), LOW_S, SCALE)[0])
        # Half a bucket's worth is all that may be wrong.
        assert abs(found - int((values > limit).sum())) <= 0.02 * len(values)
    assert over(counts, np.array([np.nan]), LOW_S, SCALE)[0] == 0


def test_sums_run_over_what_is_there() -> None:
    assert rolling_sum(np.array([1, 2, 4, 8]), 2).tolist() == [1, 3, 6, 12]


def test_what_is_outside_all_buckets_goes_to_the_last() -> None:
    counts = by_minute(np.zeros(2, np.int64), np.array([1e-9, 1e9]), 1)
    assert counts[0, 0] == counts[0, BUCKETS - 1] == 1


def test_a_bucket_s_middle_is_within_its_promise() -> None:
    values = np.exp(np.linspace(np.log(1e-4), np.log(1e3), 5_000))
    buckets = np.array([np.flatnonzero(by_minute(np.zeros(1, np.int64), np.array([v]), 1)[0])[0]
                        for v in values])  # fmt: skip
    assert np.max(np.abs(MIDDLES_S[buckets] / values - 1)) == pytest.approx(0.011, abs=5e-4)
