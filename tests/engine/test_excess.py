"""Who owns the excess: known causes planted, and sums that must be exact."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.excess import Above, Clock, Slowest, breakdown, excess
from tailburn.engine.names import HOPS, UNATTRIBUTED, decode_hop_column, ttft_hop_column
from tests.engine.store import samples

RNG = np.random.default_rng(11)
COLUMN = {"ttft": ttft_hop_column, "decode": decode_hop_column}


def row(number: int, clock: Clock = "ttft", **columns: Any) -> dict[str, Any]:
    """A request whose hops (`gateway__engine` for an edge) took so many seconds."""
    plain = ("prompt_tokens", "cached_tokens", "clock_offset_half_width_s", "weight")
    hops = {k.replace("__", ">"): v for k, v in columns.items() if k not in plain}
    others = {k: v for k, v in columns.items() if k in plain}
    return samples.request(number, **{COLUMN[clock](h): v for h, v in hops.items()}, **others)


def healthy(count: int, **columns: Any) -> list[dict[str, Any]]:
    return [
        row(i, queue=0.01 + RNG.random() / 100, prefill=0.1 + RNG.random() / 50, **columns)
        for i in range(count)
    ]


def planted(hop: str, seconds: float, **columns: Any) -> pa.Table:
    hops: dict[str, Any] = {"queue": 0.01, "prefill": 0.1} | {hop: seconds}
    slow = [row(1000 + i, **hops, **columns) for i in range(5)]
    return samples.requests(*healthy(95, **columns), *slow)


@pytest.mark.parametrize("hop", [h for h in HOPS if h not in ("queue", "prefill")])
def test_a_planted_delay_is_owned_by_its_hop(hop: str) -> None:
    found = excess(planted(hop.replace(">", "__"), 2.0), "ttft", Slowest(0.05))
    assert found.owner == hop
    assert (found.slow, found.rest, found.matched) == (5, 95, 5)
    assert found.hops[0].hop == hop
    assert found.hops[0].excess_s == pytest.approx(2.0)
    assert found.hops[0].share == pytest.approx(1, abs=0.02)


def test_two_equal_causes_leave_no_single_owner_by_a_hair() -> None:
    slow = [row(100 + i, queue=1.0, prefill=1.0, retry=0.9) for i in range(5)]
    found = excess(samples.requests(*healthy(95), *slow), "ttft", Slowest(0.05))
    assert found.owner is None
    assert sum(h.share or 0 for h in found.hops) == pytest.approx(1)


def test_time_that_no_hop_covers_owns_nothing_by_name() -> None:
    found = excess(planted(UNATTRIBUTED, 3.0), "ttft", Slowest(0.05))
    assert found.owner is None
    assert found.hops[0].hop == UNATTRIBUTED


def test_long_prompts_are_compared_with_long_prompts() -> None:
    short = [row(i, prefill=0.05, queue=0.01, prompt_tokens=100) for i in range(80)]
    long = [row(i, prefill=2.0, queue=0.01, prompt_tokens=9000) for i in range(15)]
    slow = [row(i, prefill=2.0, queue=1.0, prompt_tokens=9001) for i in range(5)]
    found = excess(samples.requests(*short, *long, *slow), "ttft", Slowest(0.05))
    assert found.owner == "queue"
    assert found.matched == 5
    assert {h.hop: h.excess_s for h in found.hops} == pytest.approx({"queue": 0.99, "prefill": 0})


def test_cached_prompt_tokens_do_not_count_as_length() -> None:
    alike = [row(i, prefill=0.1, prompt_tokens=9000, cached_tokens=8900) for i in range(20)]
    slow = row(99, prefill=1.0, prompt_tokens=100)
    found = excess(samples.requests(*alike, slow), "ttft", Slowest(0.01))
    assert found.matched == 1


def test_without_alike_requests_all_others_are_the_baseline() -> None:
    slow = row(99, prefill=1.0, queue=0.01, prompt_tokens=50_000)
    rest = [row(i, prefill=0.1, queue=0.01, prompt_tokens=100) for i in range(20)]
    found = excess(samples.requests(*rest, slow), "ttft", Slowest(0.01))
    assert (found.matched, found.owner) == (0, "prefill")


def test_only_edges_carry_the_clocks_error() -> None:
    slow = planted("gateway__engine", 1.0, clock_offset_half_width_s=0.009)
    found = excess(slow, "ttft", Slowest(0.05))
    errors = {h.hop: h.clock_error_s for h in found.hops}
    assert errors == {"gateway>engine": pytest.approx(0.009), "queue": None, "prefill": None}


def test_a_threshold_chooses_the_slow_ones() -> None:
    found = excess(planted("retry", 2.0), "ttft", Above(1.0))
    assert (found.slow, found.owner) == (5, "retry")
    assert found.fastest_slow_s == pytest.approx(2.11)


@pytest.mark.parametrize("threshold", [0.0, 1000.0])
def test_without_slow_ones_or_without_others_there_is_no_excess(threshold: float) -> None:
    found = excess(planted("retry", 2.0), "ttft", Above(threshold))
    assert (found.owner, found.hops, found.excess_ns) == (None, (), 0)
    assert found.slow + found.rest == 100


def test_requests_without_the_clock_are_counted_apart() -> None:
    rows = samples.requests(*healthy(20), *(samples.request(i) for i in range(7)))
    assert excess(rows, "ttft", Slowest(0.1)).unmeasured == 7
    assert breakdown(rows, "ttft").unmeasured == 7
    assert breakdown(rows, "decode").count == 0
    assert breakdown(rows, "decode").mean_s is None


def test_the_decode_clock_has_owners_too() -> None:
    rest = [row(i, "decode", decode=1.0, gateway=0.01) for i in range(95)]
    slow = [row(i, "decode", decode=1.0, gateway=4.0) for i in range(5)]
    assert excess(samples.requests(*rest, *slow), "decode", Slowest(0.05)).owner == "gateway"


def test_the_breakdown_means_add_up_and_medians_are_of_the_middle() -> None:
    rows = samples.requests(
        row(1, queue=0.1, prefill=1.0), row(2, queue=0.2, prefill=1.0), row(3, prefill=4.0)
    )
    found = breakdown(rows, "ttft")
    assert [h.hop for h in found.hops] == ["queue", "prefill"]
    assert [h.mean_s for h in found.hops] == pytest.approx([0.1, 2.0])
    assert [h.median_s for h in found.hops] == [0.1, 1.0]
    assert found.mean_s == pytest.approx(2.1)
    assert found.median_s == 1.2
    assert found.total_ns == sum(h.total_ns for h in found.hops) == 6_300_000_000


def test_a_weight_counts_a_request_that_often() -> None:
    rows = healthy(30)
    twice = samples.requests(*rows, *rows, row(99, queue=5.0), row(98, queue=5.0))
    weighted = samples.requests(
        *(r | {"weight": 2.0} for r in rows), row(99, queue=5.0, weight=2.0)
    )
    one, other = (excess(t, "ttft", Above(1.0)) for t in (twice, weighted))
    assert (one.slow, one.rest, one.excess_ns) == (other.slow, other.rest, other.excess_ns)
    assert breakdown(twice, "ttft").total_ns == breakdown(weighted, "ttft").total_ns
    assert breakdown(twice, "ttft").median_s == breakdown(weighted, "ttft").median_s


nanoseconds = st.integers(0, 10**12)
some_rows = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.none() | nanoseconds,
            "prefill": nanoseconds,
            "gateway__engine": st.none() | nanoseconds,
            "unattributed": nanoseconds,
            "prompt_tokens": st.none() | st.integers(0, 100_000),
            "weight": st.sampled_from([1.0, 3.0]),
        }
    ),
    min_size=2,
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(some_rows, st.floats(0.01, 0.9))
def test_hops_add_up_to_the_whole_to_the_nanosecond(
    drawn: list[dict[str, Any]], share: float
) -> None:
    keep = ("prompt_tokens", "weight")
    seconds = [{k: v if k in keep or v is None else v / 1e9 for k, v in x.items()} for x in drawn]
    table = samples.requests(*(row(i, **x) for i, x in enumerate(seconds)))
    total = sum(
        int(x["weight"]) * sum(v or 0 for k, v in x.items() if k not in keep) for x in drawn
    )
    whole = breakdown(table, "ttft")
    assert whole.total_ns == sum(h.total_ns for h in whole.hops) == total
    found = excess(table, "ttft", Slowest(share))
    assert found.excess_ns == sum(h.excess_ns for h in found.hops)
    assert found == excess(table, "ttft", Slowest(share))


@pytest.mark.parametrize("share", [0.0, 1.0, 5, -0.1])
def test_a_share_outside_0_and_1_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        Slowest(share)
