"""What would have become of the bad requests: planted causes, and sums that must be exact."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tailburn.engine.counterfactual import (
    MOST_HOPS,
    OTHERS,
    BadShare,
    bad_share,
    cured_by,
    queue_burn,
)
from tailburn.engine.names import HOPS, ttft_hop_column
from tests.engine.store import samples
from tests.engine.test_band import healthy, row

Rows = list[dict[str, Any]]


def tables(now: Rows, before: Rows) -> tuple[pa.Table, pa.Table]:
    return samples.requests(*now), samples.requests(*before)


def dealt(now: Rows, before: Rows, threshold_s: float) -> BadShare:
    found = bad_share(*tables(now, before), "ttft", threshold_s)
    assert found is not None
    return found


def test_a_delay_of_all_is_taken_back_from_all() -> None:
    now = [r | {ttft_hop_column("client>gateway"): 0.3} for r in healthy(200)]
    found = dealt(now, healthy(200), 0.2)
    assert (found.count, found.bad, found.cured_by_all) == (200, 200, 200)
    assert found.baseline_bad_ratio == 0
    [edge] = [h for h in found.hops if h.hop == "client>gateway"]
    assert (edge.cured, edge.shapley) == (200, Fraction(200)) and not edge.is_lower_bound


def test_two_hops_that_are_needed_both_share_the_blame() -> None:
    now = [row(i, queue=0.3, retrieval=0.3) for i in range(50)]
    before = [row(i, queue=0.1, retrieval=0.1) for i in range(50)]
    found = dealt(now, before, 0.3)
    assert found.cured_by_all == 50
    assert {h.hop: (h.cured, h.shapley) for h in found.hops} == {
        "queue": (0, Fraction(25)),
        "retrieval": (0, Fraction(25)),
    }
    assert {h.hop: h.is_lower_bound for h in found.hops} == {"queue": True, "retrieval": False}


def test_what_was_bad_before_is_not_blamed_on_a_hop() -> None:
    before = [row(i, prefill=0.1 if i % 4 else 2.0) for i in range(200)]
    now = [r | {ttft_hop_column("gateway"): 1.5} for r in before]
    found = dealt(now, before, 1.0)
    assert (found.bad, found.cured_by_all) == (200, 150)
    assert found.baseline_bad_ratio == 0.25
    assert {h.hop: h.shapley for h in found.hops} == {"gateway": 150}


def test_many_hops_are_one_from_the_eighth_on() -> None:
    chosen = HOPS[: MOST_HOPS + 3]
    times = {hop.replace(">", "__"): 0.1 * (i + 1) for i, hop in enumerate(chosen)}
    told: dict[str, Any] = times
    now = [row(i, **told) for i in range(30)]
    quick: dict[str, Any] = dict.fromkeys(told, 0.01)
    before = [row(i, **quick) for i in range(30)]
    found = dealt(now, before, 0.5)
    assert len(found.hops) == MOST_HOPS + 1 and OTHERS in {h.hop for h in found.hops}
    assert sum(h.shapley for h in found.hops) == found.cured_by_all == 30


rows_of = st.lists(
    st.builds(
        row,
        st.integers(0, 1000),
        st.sampled_from([100, 9000]),
        queue=st.floats(0, 2),
        prefill=st.floats(0, 2),
        gateway=st.floats(0, 2),
        retrieval=st.floats(0, 2),
    ),
    min_size=1,
    max_size=25,
)


@given(rows_of, rows_of, st.floats(0.1, 6))
@settings(max_examples=100, deadline=None)
def test_parts_add_up_and_do_not_depend_on_an_order(
    now: Rows, before: Rows, threshold_s: float
) -> None:
    found = dealt(now, before, threshold_s)
    assert sum((h.shapley for h in found.hops), Fraction(0)) == found.cured_by_all
    assert 0 <= found.cured_by_all <= found.bad <= found.count


two_hops = st.lists(
    st.builds(row, st.integers(0, 9), queue=st.floats(0.1, 2), retrieval=st.floats(0.1, 2)),
    min_size=1,
    max_size=25,
)


@given(two_hops, two_hops)
@settings(max_examples=50, deadline=None)
def test_a_part_is_the_mean_over_both_orders(now: Rows, before: Rows) -> None:
    found = dealt(now, before, 2.0)
    assume(len(found.hops) == 2)
    for one, other in permutations(found.hops):
        assert one.shapley == Fraction(one.cured + found.cured_by_all - other.cured, 2)


def test_what_measures_nothing_deals_nothing() -> None:
    empty = samples.requests(row(1))
    assert bad_share(empty, samples.requests(*healthy(3)), "ttft", 1.0) is None
    with pytest.raises(KeyError):
        bad_share(empty.drop_columns(["weight"]), empty, "ttft", 1.0)


def test_an_owner_has_half_of_the_bad_and_engine_hops_make_bounds() -> None:
    now = [row(i, queue=0.6 if i % 3 else 0.1, gateway=0.05) for i in range(90)]
    found = dealt(now, [row(i, queue=0.1, gateway=0.05) for i in range(90)], 0.5)
    assert (found.owner, found.is_lower_bound) == ("queue", True)
    edge = [r | {ttft_hop_column("client>gateway"): 0.6} for r in healthy(40)]
    found = dealt(edge, healthy(40), 0.5)
    assert (found.owner, found.is_lower_bound) == ("client>gateway", False)
    both = [row(i, queue=0.3, retrieval=0.3, prefill=0.3) for i in range(50)]
    assert dealt(both, [row(i, queue=0.1, retrieval=0.1, prefill=0.1) for i in range(50)],
                 0.31).owner is None  # fmt: skip


@pytest.mark.parametrize(
    ("hop", "is_bound"),
    [
        ("client", False), ("client>gateway", False), ("gateway", False), ("retrieval", False),
        ("kv_load", True), ("router>engine", False), ("queue", True), ("prefill", True),
        ("decode", True), ("kv_transfer", True), ("tokenizer", True), ("retry", True),
    ],
)  # fmt: skip
def test_hops_that_feed_back_are_lower_bounds(hop: str, is_bound: bool) -> None:
    now = [r | {ttft_hop_column(hop): 2.0} for r in healthy(30)]
    [share] = [h for h in dealt(now, healthy(30), 1.0).hops if h.hop == hop]
    assert share.is_lower_bound is is_bound


@given(rows_of, rows_of, st.floats(0.1, 4))
@settings(max_examples=40, deadline=None)
def test_hops_put_back_together_cure_what_they_do_alone_or_all(
    now: Rows, before: Rows, threshold_s: float
) -> None:
    found = dealt(now, before, threshold_s)
    both = tables(now, before)
    for hop in found.hops:
        cured = cured_by(*both, "ttft", threshold_s, [hop.hop])
        assert cured == (found.count, found.bad, hop.cured)
    every = cured_by(*both, "ttft", threshold_s, [hop.hop for hop in found.hops])
    assert every == (found.count, found.bad, found.cured_by_all)


@given(rows_of, rows_of, st.floats(0.1, 4))
@settings(max_examples=60, deadline=None)
def test_the_queues_part_over_time_adds_up_to_what_it_would_have_cured(
    now: Rows, before: Rows, threshold_s: float
) -> None:
    found = dealt(now, before, threshold_s)
    edges = samples.T0 + np.array([0, 300, 301, 1_002]) * samples.SECOND_NS
    parts = queue_burn(*tables(now, before), "ttft", threshold_s, edges)
    assert [(p.since_ns, p.until_ns) for p in parts] == list(
        zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    )
    assert sum(p.count for p in parts) == found.count
    assert sum(p.bad for p in parts) == found.bad
    cured = [h.cured for h in found.hops if h.hop == "queue"]
    assert sum(p.queued for p in parts) == sum(cured)
