"""Load-matched deadlines: what is learnt, what is matched, and what is said of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine import histogram, rollup
from tailburn.engine.baseline import (
    Basis,
    Deadlines,
    Learnt,
    Outside,
    fold,
    merge,
)
from tailburn.engine.baseline.load import BASES
from tests.engine.baseline.loading import matched
from tests.engine.store import samples

TTFT, TPOT = "ttft_gateway_s", "tpot_gateway_s"
BY = ("service", "model", "replica")
MINUTE = rollup.MINUTE_NS
HOUR = 60 * MINUTE
NOW = samples.T0 + 10 * 24 * HOUR


def row(minute: int, tokens: Any = 1000, **more: Any) -> dict[str, Any]:
    """A request received `minute` minutes before now, of so many uncached tokens."""
    base = {"replica": "r1", "prompt_tokens": tokens, "cached_tokens": 0, TTFT: 0.2, TPOT: 0.02}
    return samples.request(0, received_ns=NOW - minute * MINUTE, **(base | more))


def steady(rate_per_s: float, minutes: list[int], **more: Any) -> pa.Table:
    """Loads as if measured."""
    names = {"service": "chat", "model": "llama", "replica": "r1"} | more
    ratio = names.pop("prefix_hit_ratio", None)
    size = len(minutes)
    return pa.table(
        {
            "minute_ns": pa.array([NOW - m * MINUTE for m in minutes]),
            **{n: pa.array([names[n]] * size) for n in BY},
            "rate_per_s": pa.array([rate_per_s] * size),
            "prefix_hit_ratio": pa.array([ratio] * size, pa.float64()),
        }
    )


def learnt(rows: list[dict[str, Any]], load: Any, clock: str = TTFT) -> pa.Table:
    requests = samples.requests(*rows)
    return fold(requests, matched(requests, load, BY), BY, [clock])


def asked(
    cells: pa.Table, one: dict[str, Any], load: pa.Table, clock: str = TTFT, minimum: int = 20
) -> Deadlines:
    requests, found = samples.requests(one), Learnt(cells, BY, minimum)
    return found.deadlines(requests, matched(requests, load, BY), clock)


def near(value_s: float) -> Any:
    return pytest.approx(value_s, rel=1.1 * histogram.RELATIVE_ERROR)


OLD = list(range(120, 180))
LOAD = pa.concat_tables([steady(4.0, OLD), steady(4.0, [0])])
LINE = [row(m, t, **{TTFT: 0.1 + t * 1e-4}) for m in OLD for t in (500, 1000, 4000, 8000)]


def test_a_deadline_is_one_and_a_half_times_p99_at_this_load() -> None:
    found = asked(learnt([row(m) for m in OLD], LOAD), row(0), LOAD)
    assert found.deadline_s[0] == near(0.3)
    assert found.outside[0] == Outside.INSIDE
    assert found.told(0).endswith("60 requests of 1 day by arrival rate and uncached prompt tokens")


@pytest.mark.parametrize("tokens", [600, 3000, 8000])
def test_the_first_tokens_deadline_grows_with_uncached_tokens(tokens: int) -> None:
    found = asked(learnt(LINE, LOAD), row(0, tokens + 700, cached_tokens=700), LOAD)
    assert found.deadline_s[0] == pytest.approx(1.5 * (0.1 + tokens * 1e-4), rel=0.03)


def test_cached_tokens_are_not_worked_on_so_they_do_not_count() -> None:
    cells = learnt(LINE, LOAD)
    long = asked(cells, row(0, 8000), LOAD).deadline_s[0]
    cached = asked(cells, row(0, 8000, cached_tokens=7500), LOAD).deadline_s[0]
    assert cached < long / 3


@pytest.mark.parametrize(
    ("rate_per_s", "tokens", "outside"),
    [
        (4.0, 1000, Outside.INSIDE),
        (20.0, 1000, Outside.RATE_ABOVE),
        (0.5, 1000, Outside.RATE_BELOW),
        (4.0, 100, Outside.TOKENS_BELOW),
        (20.0, 60_000, Outside.RATE_ABOVE | Outside.TOKENS_ABOVE),
    ],
)
def test_what_was_never_seen_is_outside(rate_per_s: float, tokens: int, outside: Outside) -> None:
    found = asked(learnt(LINE, LOAD), row(0, tokens), steady(rate_per_s, [0]))
    assert Outside(int(found.outside[0])) == outside
    assert found.deadline_s[0] > 0
    assert ("outside what was seen" in found.told(0)) == bool(outside)


def test_the_nearest_rate_is_matched_and_not_the_others() -> None:
    busy = steady(40.0, list(range(200, 260)))
    load = pa.concat_tables([LOAD, busy])
    rows = [row(m) for m in OLD] + [row(m, **{TTFT: 2.0}) for m in range(200, 260)]
    cells = learnt(rows, load)
    assert asked(cells, row(0), steady(4.0, [0])).deadline_s[0] == near(0.3)
    assert asked(cells, row(0), steady(40.0, [0])).deadline_s[0] == near(3.0)
    assert asked(cells, row(0), steady(5.0, [0])).deadline_s[0] == near(0.3)


def test_a_thin_rate_takes_the_next_ones() -> None:
    load = pa.concat_tables([LOAD, steady(40.0, [200])])
    cells = learnt([row(m) for m in OLD] + [row(200, **{TTFT: 2.0})], load)
    found = asked(cells, row(0), steady(40.0, [0]))
    assert (found.lines[0].count, found.outside[0]) == (61, Outside.INSIDE)


def test_hours_left_out_teach_nothing() -> None:
    before = list(range(240, 300))
    load = pa.concat_tables([LOAD, steady(4.0, before)])
    slow = [row(m, **{TTFT: 9.0}) for m in before]
    cells = learnt([*(row(m) for m in OLD), *slow], load)
    assert asked(cells, row(0), LOAD).deadline_s[0] == near(13.5)
    out = pa.array(cells.column("max_s").to_numpy() > 1)
    cells = cells.set_column(cells.column_names.index("left_out"), "left_out", out)
    assert asked(cells, row(0), LOAD).deadline_s[0] == near(0.3)


def test_tpot_counts_from_sixteen_output_tokens_and_by_rate_alone() -> None:
    rows = [row(m, output_tokens=15, **{TPOT: 5.0}) for m in OLD]
    rows += [row(m, output_tokens=16) for m in OLD]
    cells = learnt(rows, LOAD, TPOT)
    found = asked(cells, row(0, 9000), LOAD, clock=TPOT)
    assert found.deadline_s[0] == near(0.03)
    assert (BASES[found.basis[0]], found.outside[0]) == (Basis.RATE, Outside.INSIDE)
    assert np.isnan(asked(cells, row(0, output_tokens=15), LOAD, clock=TPOT).deadline_s[0])


def test_where_cached_tokens_are_not_told_the_hit_ratio_is_matched_and_that_is_said() -> None:
    cold, warm = list(range(120, 150)), list(range(150, 180))
    load = pa.concat_tables(
        [steady(4.0, cold, prefix_hit_ratio=0.05), steady(4.0, warm, prefix_hit_ratio=0.85)]
    )
    rows = [row(m, cached_tokens=None, **{TTFT: 1.0 if m in cold else 0.1}) for m in cold + warm]
    cells = learnt(rows, load)
    one = row(0, cached_tokens=None)
    at = asked(cells, one, steady(4.0, [0], prefix_hit_ratio=0.88))
    assert at.deadline_s[0] == near(0.15)
    assert "the engine does not tell cached tokens" in at.told(0)
    between = asked(cells, one, steady(4.0, [0], prefix_hit_ratio=0.5))
    assert between.deadline_s[0] == near(1.5)
    assert "too rare to match on" in between.told(0)


@pytest.mark.parametrize("ratio_before", [None, 0.05])
def test_a_hit_ratio_that_is_not_known_is_not_said_to_be_matched(
    ratio_before: float | None,
) -> None:
    rows = [row(m, cached_tokens=None) for m in OLD]
    cells = learnt(rows, steady(4.0, OLD, prefix_hit_ratio=ratio_before))
    found = asked(cells, row(0, cached_tokens=None), steady(4.0, [0]))
    assert "arrival rate and prompt tokens: " in found.told(0)
    assert found.told(0).endswith("neither requests nor metrics tell what was cached")


def test_without_the_length_of_the_prompt_the_rate_alone_is_matched() -> None:
    found = asked(learnt([row(m, None) for m in OLD], LOAD), row(0, None), LOAD)
    assert (BASES[found.basis[0]], found.deadline_s[0]) == (Basis.RATE, near(0.3))


def test_a_new_replica_takes_the_line_of_all_replicas() -> None:
    load = pa.concat_tables([LOAD, steady(4.0, [0], replica="r2")])
    found = asked(learnt([row(m) for m in OLD], load), row(0, replica="r2"), load)
    assert found.deadline_s[0] == near(0.3)
    assert "of all replica together" in found.told(0)


def test_a_young_service_has_no_deadline_and_says_what_is_missing() -> None:
    found = asked(learnt([row(m) for m in OLD[:12]], LOAD), row(0), LOAD)
    assert np.isnan(found.deadline_s[0])
    assert found.told(0) == "no deadline: 8 more requests like it are needed"


def test_a_request_of_unknown_load_has_none() -> None:
    found = asked(learnt([row(m) for m in OLD], LOAD), row(0), steady(4.0, OLD))
    assert found.told(0) == "no deadline: its load or clock is unknown"


@pytest.mark.parametrize("bad", [{"factor": 0.0}, {"factor": float("nan")}, {"minimum": 0}])
def test_impossible_rules_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="want a factor above 0"):
        Learnt(learnt([], LOAD), BY, **bad)


def test_nothing_learnt_and_nothing_asked_are_answered() -> None:
    assert asked(learnt([], LOAD), row(0), LOAD).missing[0] == 20
    nothing = samples.requests()
    found = Learnt(learnt([], LOAD), BY).deadlines(nothing, matched(nothing, LOAD, BY), TTFT)
    assert len(found.line) == 0


events = st.lists(
    st.builds(
        row,
        st.sampled_from([0, 1, 70, 130, 200]),
        st.sampled_from([None, 0, 1, 300, 900, 40_000]),
        replica=st.sampled_from(["r1", "r2", "elsewhere"]),
        cached_tokens=st.sampled_from([None, 0, 100]),
        weight=st.sampled_from([1.0, 3.0]),
        ttft_gateway_s=st.sampled_from([None, 0.0, 0.1, 3.0, 2000.0]),
    ),
    max_size=20,
)
MINUTES = [0, 1, 70, 130]
MIXED = pa.concat_tables(
    [steady(4.0, MINUTES), steady(0.3, MINUTES, replica="r2", prefix_hit_ratio=1.0)]
)


@settings(max_examples=60, deadline=None)
@given(events, st.lists(st.integers(0, 3), min_size=20, max_size=20), st.permutations(range(4)))
def test_any_pieces_in_any_order_make_the_same_cells(
    rows: list[dict[str, Any]], owner: list[int], order: list[int]
) -> None:
    parts = [[r for r, o in zip(rows, owner, strict=False) if o == piece] for piece in order]
    ab, cd = (merge(pa.concat_tables([learnt(p, MIXED) for p in h]), BY) for h in _halves(parts))
    assert merge(pa.concat_tables([ab, cd]), BY).to_pylist() == learnt(rows, MIXED).to_pylist()


def _halves(parts: list[list[dict[str, Any]]]) -> list[list[list[dict[str, Any]]]]:
    return [parts[:2], parts[2:]]


@settings(max_examples=60, deadline=None)
@given(events)
def test_cells_hold_each_known_request_once(rows: list[dict[str, Any]]) -> None:
    cells = learnt(rows, MIXED)
    known = [
        r for r in rows
        if r[TTFT] is not None
        and r["replica"] != "elsewhere"
        and r["received_ns"] in MIXED.column("minute_ns").to_pylist()
    ]  # fmt: skip
    assert sum(cells.column("count").to_pylist()) == sum(int(r["weight"]) for r in known)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, 4, 16]), st.floats(0.01, 100)), min_size=20),
    st.sampled_from([1, 2, 4, 8, 16, 64]),
)
def test_a_slow_oracle_agrees(pairs: list[tuple[int, float]], rate: int) -> None:
    load = pa.concat_tables([steady(r, [100 + r]) for r in (1, 4, 16)])
    cells = learnt([row(100 + r, **{TTFT: v}) for r, v in pairs], load)
    by_distance = sorted({abs(np.log2(r / rate)) for r, _ in pairs})
    reach = next(d for d in by_distance if sum(abs(np.log2(r / rate)) <= d for r, _ in pairs) >= 20)
    mine = sorted(v for r, v in pairs if abs(np.log2(r / rate)) <= reach)
    found = asked(cells, row(0), steady(rate, [0]))
    assert found.deadline_s[0] == near(1.5 * mine[histogram.rank_of(0.99, len(mine)) - 1])
    assert found.lines[0].count == len(mine)


@settings(max_examples=40, deadline=None)
@given(events, events, st.sampled_from([0.1, 0.3, 1.0, 4.0, 30.0]))
def test_more_requests_never_push_a_rate_outside_nor_take_a_deadline_away(
    rows: list[dict[str, Any]], more: list[dict[str, Any]], rate: float
) -> None:
    past = [r for r in (*rows, *more) if r["received_ns"] < NOW - HOUR]
    few = learnt([r for r in rows if r in past], MIXED)
    many = learnt([*(r for r in rows if r in past), *(r for r in more if r in past)], MIXED)
    one, load = row(0), steady(rate, [0])
    before, after = (asked(c, one, load, minimum=3) for c in (few, many))
    assert after.missing[0] <= before.missing[0]
    if before.level[0] >= 0:
        assert 0 <= after.level[0] <= before.level[0]
        if after.level[0] == before.level[0]:
            rates = int(Outside.RATE_ABOVE | Outside.RATE_BELOW)
            assert (after.outside[0] & rates) in (0, before.outside[0] & rates)
