"""Requests folded into rollups, and rollups merged, judged by counting one by one."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine import histogram, rollup
from tailburn.engine.names import CLOCK_COLUMNS
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS
from tests.engine.store import samples
from tests.engine.store.samples import MINUTE_NS, SECOND_NS, T0

KEYS = ("minute_ns", *ROLLUP_DIMENSIONS, "clock")


def row_of(rollups: pa.Table, clock: str) -> dict[str, Any]:
    [row] = [x for x in rollups.to_pylist() if x["clock"] == clock]
    return dict(row)


def plain(rollups: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rollups by key, without the sums, whose last digits depend on order."""
    return {
        tuple(x[k] for k in KEYS if k in x): (
            x["count"],
            dict(zip(x["buckets"], x["counts"], strict=True)),
        )
        for x in rollups.to_pylist()
    }


def one_by_one(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What `fold` must give, in plain Python."""
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    buckets: dict[tuple[Any, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["tombstone"]:
            continue
        minute = row["received_ns"] // MINUTE_NS * MINUTE_NS
        series = (minute, *(row.get(d) or "unknown" for d in ROLLUP_DIMENSIONS))
        weight = max(round(row["weight"]), 1)
        counts[*series, rollup.REQUESTS] += weight
        for clock in rollup.FOLDED_COLUMNS:
            value = row.get(clock)
            if value is None or (clock.startswith("tpot") and (row["output_tokens"] or 0) < 16):
                continue
            counts[*series, clock] += weight
            buckets[*series, clock][int(histogram.bucket_of(np.array([value]))[0])] += weight
    return {key: (counts[key], dict(buckets[key])) for key in counts}


some_request = st.fixed_dictionaries(
    {
        "received_ns": st.integers(T0, T0 + 200 * SECOND_NS),
        "model": st.sampled_from(["a", "b", None]),
        "pool": st.sampled_from(["x", "unknown", None]),
        "replica": st.sampled_from(["r1", "r2"]),
        "ttft_client_s": st.none() | st.floats(0, 2000),
        "tpot_gateway_s": st.none() | st.floats(0.001, 1),
        "decode_queue_s": st.none() | st.floats(0, 1),
        "output_tokens": st.sampled_from([None, 1, 15, 16, 400]),
        "tombstone": st.booleans(),
        "weight": st.sampled_from([1.0, 2.4, 20.0, 0.2]),
    }
)
some_requests = st.lists(some_request, max_size=30).map(
    lambda rows: [samples.request(0) | row for row in rows]
)


@settings(max_examples=60, deadline=None)
@given(some_requests)
def test_folding_counts_what_counting_one_by_one_counts(rows: list[dict[str, Any]]) -> None:
    folded = rollup.fold(samples.requests(*rows))
    assert folded.schema.equals(ROLLUPS)
    assert plain(folded) == one_by_one(rows)


@settings(max_examples=40, deadline=None)
@given(some_requests, st.randoms(use_true_random=False), st.integers(1, 5))
def test_any_order_and_batching_merges_to_the_same_counts(
    rows: list[dict[str, Any]], chance: Any, batches: int
) -> None:
    whole = rollup.merge(rollup.fold(samples.requests(*rows)), KEYS[:-1])
    chance.shuffle(rows)
    parts = [rollup.fold(samples.requests(*rows[i::batches])) for i in range(batches)]
    chance.shuffle(parts)
    merged = rollup.merge(pa.concat_tables(parts), KEYS[:-1])
    again = rollup.merge(pa.concat_tables([merged.cast(ROLLUPS)]), KEYS[:-1])
    assert plain(merged) == plain(whole) == plain(again)


@settings(max_examples=30, deadline=None)
@given(some_requests, some_requests)
def test_taking_rows_back_leaves_exactly_the_others(
    kept: list[dict[str, Any]], older: list[dict[str, Any]]
) -> None:
    tables = [
        rollup.fold(samples.requests(*kept)),
        rollup.fold(samples.requests(*older)),
        rollup.fold(samples.requests(*older), sign=-1),
    ]
    left = rollup.merge(pa.concat_tables(tables), ["model", "replica"])
    want = rollup.merge(tables[0], ["model", "replica"])
    assert plain(left) == plain(want)


def test_sum_minimum_and_maximum_are_true_ones() -> None:
    values = [0.25, 1e-6, 5000.0, 3.5]
    rows = [samples.request(i, ttft_client_s=v) for i, v in enumerate(values)]
    row = row_of(rollup.fold(samples.requests(*rows)), "ttft_client_s")
    assert (row["min_s"], row["max_s"]) == (1e-6, 5000.0)
    assert row["sum_s"] == pytest.approx(sum(values))
    assert row["minute_ns"] == T0


def test_minutes_are_exact_to_the_nanosecond() -> None:
    rows = [
        samples.request(1, received_ns=T0 + MINUTE_NS - 1),
        samples.request(2, received_ns=T0 + MINUTE_NS),
    ]
    folded = rollup.fold(samples.requests(*rows))
    assert sorted(folded.column("minute_ns").to_pylist()) == [T0, T0 + MINUTE_NS]


def test_what_is_no_duration_is_unmeasured_and_costs_no_other_request() -> None:
    rows = [samples.request(i, ttft_client_s=v) for i, v in enumerate([0.1, np.nan, -1.0, np.inf])]
    folded = rollup.fold(samples.requests(*rows))
    assert row_of(folded, "ttft_client_s")["count"] == 1
    assert row_of(folded, rollup.REQUESTS)["count"] == 4


def test_a_row_taken_back_says_nothing_of_minimum_and_maximum() -> None:
    rows = samples.requests(samples.request(1, e2e_client_s=2.0))
    row = row_of(rollup.fold(rows, sign=-1), "e2e_client_s")
    assert (row["count"], row["counts"], row["sum_s"]) == (-1, [-1], -2.0)
    assert (row["min_s"], row["max_s"]) == (None, None)


def test_folding_nothing_gives_an_empty_table_of_the_schema() -> None:
    for rows in (samples.requests(), samples.requests(samples.request(1, tombstone=True))):
        folded = rollup.fold(rows)
        assert folded.schema.equals(ROLLUPS)
        assert len(folded) == 0
        assert len(rollup.merge(folded, ["model"])) == 0


def test_a_dense_row_is_the_histogram_of_its_values() -> None:
    values = np.random.default_rng(3).lognormal(-1, 1, 500)
    rows = [samples.request(1, ttft_client_s=float(v)) for v in values]
    folded = rollup.fold(samples.requests(*rows))
    at = folded.column("clock").to_pylist().index("ttft_client_s")
    assert np.array_equal(rollup.dense(folded, at), histogram.counts(values))


def test_sparse_rows_are_the_dense_ones_where_these_are_not_zero() -> None:
    rows = [
        samples.request(i, model=f"m{i % 3}", ttft_client_s=0.1 * (i + 1), e2e_client_s=2.0)
        for i in range(20)
    ]
    folded = rollup.merge(rollup.fold(samples.requests(*rows)), ["model"]).slice(1)
    cells = rollup.sparse(folded)
    assert len(cells) == len(folded)
    for row, (buckets, counts) in enumerate(cells):
        whole = rollup.dense(folded, row)
        assert np.array_equal(buckets, np.flatnonzero(whole))
        assert np.array_equal(counts, whole[buckets])


def test_many_series_take_the_sparse_way_to_the_same_counts() -> None:
    rows = [
        samples.request(0, replica=f"r{i}", ttft_client_s=0.1 * (i % 7 + 1)) for i in range(6000)
    ]
    merged = rollup.merge(rollup.fold(samples.requests(*rows)), ["replica"])
    assert len(merged) == 12_000
    assert set(merged.column("count").to_pylist()) == {1}
    whole = rollup.merge(rollup.fold(samples.requests(*rows)), [])
    assert row_of(whole, "ttft_client_s")["count"] == 6000


def test_every_clock_of_a_request_is_folded() -> None:
    row = samples.request(1, **dict.fromkeys(rollup.FOLDED_COLUMNS, 0.5))
    clocks = rollup.fold(samples.requests(row)).column("clock").to_pylist()
    assert clocks == [rollup.REQUESTS, *rollup.FOLDED_COLUMNS]
    assert set(CLOCK_COLUMNS) < set(clocks)
