"""Seconds over the baseline: which hop has them, what the baseline is, what a split changes."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.excess import PLACES
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import REQUESTS
from tailburn.engine.slo.model import Clock, Place, Slo, Tier
from tailburn.engine.slo.slowness import Slowness, Times, objective_of, times_of

QUEUE, PREFILL = PLACES.index("queue"), PLACES.index("prefill")


def requests(*rows: tuple[int, float, float], prompt_tokens: int = 100) -> Times:
    """Of (minute, seconds in the queue, seconds in the prefill)."""
    given: dict[str, list[Any]] = {
        "received_ns": [minute * MINUTE_NS for minute, _, _ in rows],
        "ttft_queue_s": [queue for _, queue, _ in rows],
        "ttft_prefill_s": [prefill for _, _, prefill in rows],
        "prompt_tokens": [prompt_tokens] * len(rows),
    }
    columns = [pa.array(given.get(f.name, [None] * len(rows))).cast(f.type) for f in REQUESTS]
    return times_of(pa.table(columns, schema=REQUESTS))


def slow(*flags: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array(flags, np.bool_)


QUICK_MINUTE = requests(*[(1, 0.1, 0.2)] * 10)


def test_the_hop_that_is_slow_has_the_excess() -> None:
    found = Slowness()
    found.add(QUICK_MINUTE, slow(*[False] * 10))
    found.add(requests((2, 2.1, 0.25), (2, 0.1, 0.2)), slow(True, False))
    assert found.slow_ns[[QUEUE, PREFILL]].tolist() == [2_000_000_000, 50_000_000]
    assert found.excess_ns == 2_050_000_000 == found.slow_ns.sum()


def test_a_hop_that_was_quicker_takes_nothing_back() -> None:
    found = Slowness()
    found.add(QUICK_MINUTE, slow(*[False] * 10))
    found.add(requests((2, 1.1, 0.0)), slow(True))
    assert found.slow_ns[[QUEUE, PREFILL]].tolist() == [1_000_000_000, 0]
    assert found.excess_ns == 800_000_000


def test_nothing_counts_without_a_baseline_of_minutes_before() -> None:
    found = Slowness()
    found.add(requests(*[(1, 0.1, 0.2)] * 10, (1, 9.0, 0.2)), slow(*[False] * 10, True))
    assert found.excess_ns == 0
    found = Slowness()
    found.add(requests(*[(1, 0.1, 0.2)] * 4), slow(*[False] * 4))
    found.add(requests((2, 9.0, 0.2)), slow(True))
    assert found.excess_ns == 0, "four are no baseline"


def test_long_prompts_are_compared_with_long_prompts() -> None:
    found = Slowness()
    found.add(requests(*[(1, 0.1, 0.2)] * 99), slow(*[False] * 99))
    found.add(requests(*[(1, 0.1, 1.2)] * 9, prompt_tokens=4000), slow(*[False] * 9))
    found.add(requests((2, 0.6, 1.2), prompt_tokens=4000), slow(True))
    assert found.slow_ns[[QUEUE, PREFILL]].tolist() == [500_000_000, 0]


def test_an_old_baseline_gives_way_to_a_new_one() -> None:
    found = Slowness()
    found.add(requests(*[(1, 0.1, 0.2)] * 10), slow(*[False] * 10))
    found.add(requests(*[(600, 0.3, 0.2)] * 10), slow(*[False] * 10))
    found.add(requests((601, 1.3, 0.2)), slow(True))
    assert found.slow_ns[QUEUE] == pytest.approx(1e9, rel=0.001)


ROWS = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([0.1, 0.2, 0.3]), st.booleans()),
    min_size=1,
    max_size=60,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(ROWS, st.lists(st.integers(1, 59), max_size=5))
def test_neither_a_split_nor_a_restart_changes_anything(
    rows: list[tuple[int, float, bool]], cuts: list[int]
) -> None:
    ends = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    assert _counted(rows, ends) == _counted(rows, [0, len(rows)])


def _counted(rows: list[tuple[int, float, bool]], ends: list[int]) -> list[Any]:
    state = Slowness().state()
    for begin, end in zip(ends, ends[1:], strict=False):
        found = Slowness.restore(json.loads(json.dumps(state)))
        part = rows[begin:end]
        table = requests(*((m, 5.0 if is_slow else queue, queue) for m, queue, is_slow in part))
        found.add(table, slow(*(is_slow for _, _, is_slow in part)))
        state = found.state()
    return state


def test_the_widest_budget_of_the_first_token_says_what_is_slow() -> None:
    slo = Slo("chat", Place("chat.yaml", 1), availability_ratio=0.99)
    assert objective_of(slo) is None
    tiers = {Tier.ACCEPTABLE: {"p50": 0.1, "p99": 2.0, "p95": 0.5}}
    found = objective_of(replace(slo, clocks={Clock.TTFT: tiers, Clock.E2E: tiers}))
    assert found is not None and found.name == "ttft_p95"
