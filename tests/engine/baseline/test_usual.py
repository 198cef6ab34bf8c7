"""What is learnt as requests close: exact however they are split, and right about who is late."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine.baseline import Usual
from tailburn.engine.baseline.usual import CLOCKS, DeadlineS
from tailburn.engine.grouping import F64, numbers
from tailburn.engine.schema import REQUESTS, USUAL
from tests.engine.baseline.traffic import HOUR, MINUTE, TTFT, Fleet
from tests.engine.store import samples

FLEET = Fleet()


def nothing(since_ns: int) -> pa.Table:
    return USUAL.empty_table()


def late(requests: pa.Table, deadline_s: DeadlineS) -> np.ndarray:
    return np.array(numbers(requests.column(TTFT), np.nan) > deadline_s[TTFT])


def taken(usual: Usual, parts: list[pa.Table]) -> tuple[list[F64], pa.Table]:
    """Deadlines of every clock, and the cells that closed."""
    found = [usual.take(part) for part in parts]
    whole = [np.concatenate([f[clock] for f in found]) for clock in CLOCKS]
    return whole, usual.take_rows()


def rows_of(received: list[tuple[int, str, int]]) -> pa.Table:
    made = [
        samples.request(
            i, received_ns=samples.T0 + s * samples.SECOND_NS, replica=replica,
            prompt_tokens=100 * (i % 5), ttft_gateway_s=0.01 * t, tpot_gateway_s=0.001 * t,
        )
        for i, (s, replica, t) in enumerate(received)
    ]  # fmt: skip
    return samples.requests(*made)


streams = st.lists(
    st.tuples(st.integers(0, 900), st.sampled_from(["r1", "r2"]), st.integers(1, 40)),
    min_size=1,
    max_size=60,
)


def closing(steps: list[tuple[int, str, int]], back_s: int) -> pa.Table:
    """Requests as the clock goes on; once it is set back."""
    at = np.cumsum([s for s, _, _ in steps])
    at[len(at) // 2 :] -= back_s
    return rows_of([(int(s), r, t) for s, (_, r, t) in zip(at, steps, strict=True)])


@settings(max_examples=40, deadline=None)
@given(streams, st.sets(st.integers(0, 60)), st.sampled_from([0, 40, 5_000]))
def test_any_split_of_the_same_requests_gives_the_same_deadlines_and_cells(
    steps: list[tuple[int, str, int]], cuts: set[int], back_s: int
) -> None:
    whole = closing(steps, back_s)
    ends = [0, *sorted(c for c in cuts if c < len(whole)), len(whole)]
    parts = [whole.slice(a, b - a) for a, b in zip(ends, ends[1:], strict=False)]
    one, many = Usual(nothing, minimum=3), Usual(nothing, minimum=3)
    (first, cells), (second, others) = taken(one, [whole]), taken(many, parts)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert cells.to_pylist() == others.to_pylist()
    assert one.state() == many.state()


@settings(max_examples=40, deadline=None)
@given(streams, st.integers(0, 60), st.sampled_from([0, 40, 5_000]))
def test_a_kill_changes_nothing(steps: list[tuple[int, str, int]], kill: int, back_s: int) -> None:
    whole = closing(steps, back_s)
    before, after = whole.slice(0, kill), whole.slice(kill)
    unhurt = Usual(nothing, minimum=3)
    _, published = taken(unhurt, [before])
    state = unhurt.state()
    revived = Usual(lambda since: published, minimum=3)
    revived.restore(state)
    (first, cells), (second, others) = taken(unhurt, [after]), taken(revived, [after])
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert cells.to_pylist() == others.to_pylist()
    assert unhurt.state() == revived.state()


@settings(max_examples=40, deadline=None)
@given(streams)
def test_each_request_meets_the_load_of_the_slots_before_it(
    steps: list[tuple[int, str, int]],
) -> None:
    whole = closing([(min(s, 40), r, t) for s, r, t in steps], 0)
    slots = (whole.column("received_ns").to_numpy() // 10_000_000_000).tolist()
    replicas = whole.column("replica").to_pylist()
    usual = Usual(nothing)
    usual.take(whole)
    loads = []
    for slot, replica in zip(slots, replicas, strict=True):
        whole_slots = min(slot - slots[0] - 1, 30)
        if whole_slots < 6:
            continue
        pairs = list(zip(slots, replicas, strict=True))
        one, six, most = (
            sum(slot - n <= s < slot and r == replica for s, r in pairs) for n in (1, 6, 30)
        )
        rates = [max(most, 1) / whole_slots / 10, six / 60 if six >= 20 else 0]
        rate = max(*rates, one / 10 if one >= 20 else 0)
        loads.append(int(np.floor(2 * np.log2(rate))))
    cells = pa.concat_tables([usual.take_rows(), usual.open_cells()])
    of_ttft = cells.filter(pc.equal(cells.column("clock").cast(pa.string()), TTFT))
    rates_told = np.repeat(of_ttft.column("rate_bin"), of_ttft.column("count"))
    assert sorted(rates_told.tolist()) == sorted(loads)


def test_an_hour_teaches_from_its_end_on_and_not_before() -> None:
    usual = Usual(nothing)
    flat = np.full(60, 4.0)
    first = usual.take(FLEET.requests(flat, 1))
    assert np.isnan(first[TTFT]).all()
    assert len(usual.take_rows()) == 0
    second = usual.take(FLEET.requests(flat, 2, slow=5.0, first_minute=60))
    assert np.nanmean(~np.isnan(second[TTFT])) > 0.95
    cells = usual.take_rows()
    assert set(cells.column("hour_ns").to_pylist()) == {samples.T0}
    assert cells.schema.equals(USUAL)


def test_deadlines_are_one_and_a_half_times_p99_of_requests_like_them() -> None:
    usual = Usual(nothing)
    for hour in range(4):
        usual.take(FLEET.requests(np.full(60, 4.0), hour, first_minute=60 * hour))
    now = FLEET.requests(np.full(30, 4.0), 9, first_minute=240)
    found = usual.take(now)[TTFT]
    tokens = now.column("prompt_tokens").to_numpy()
    exact = 1.5 * (0.05 + tokens * 1e-4) * FLEET.busy(4.0) * np.exp(2.326 * FLEET.noise)
    known = ~np.isnan(found) & (tokens > 100) & (tokens < 3_000)
    assert known.mean() > 0.8
    assert np.median(np.abs(found[known] / exact[known] - 1)) < 0.2


Taught = tuple[list[pa.Table], dict[str, Any]]


def taught(fleet: Fleet, days: int = 1) -> Taught:
    """Cells of four hours a day between 2 and 8 requests a second, and the state at their end."""
    usual, published = Usual(nothing), []
    for hour in (24 * day + h for day in range(days) for h in range(4)):
        rate = 5 - 3 * np.cos(np.pi * (hour + np.arange(60) / 60) / 2)
        usual.take(fleet.requests(rate, hour, first_minute=60 * hour))
        published.append(usual.take_rows())
    return published, usual.state()


@pytest.fixture(scope="module")
def a_day() -> Taught:
    return taught(FLEET)


def after(a_day: Taught) -> Usual:
    published, state = a_day
    usual = Usual(lambda since: pa.concat_tables(published))
    usual.restore(state)
    return usual


def minutes_of(requests: pa.Table) -> np.ndarray:
    return np.array((requests.column("received_ns").to_numpy() - samples.T0) // MINUTE)


def pages(requests: pa.Table, missed: np.ndarray, had: np.ndarray) -> int | None:
    """Minutes until a tenth of 5 min and 3 % of 30 were late; None: never."""
    minute = minutes_of(requests)
    begin = int(minute.min())
    bad = np.bincount(minute - begin, missed)
    total = np.bincount(minute - begin, had)
    for end in range(1, len(bad) + 1):
        short, long = slice(max(end - 5, 0), end), slice(max(end - 30, 0), end)
        enough = bad[short].sum() >= 5 and bad[long].sum() >= 10
        if (
            enough
            and bad[short].sum() >= 0.1 * total[short].sum()
            and (bad[long].sum() >= 0.03 * total[long].sum())
        ):
            return end
    return None


def judged(usual: Usual, requests: pa.Table) -> int | None:
    found = usual.take(requests)
    return pages(requests, late(requests, found), ~np.isnan(found[TTFT]))


def test_a_rise_of_the_load_is_no_page_though_the_tail_of_yesterday_was_half_of_it() -> None:
    quiet = np.full(30, 2.0)
    risen = np.concatenate([quiet, np.full(30, 7.5)])
    busy = Fleet(busy=lambda rate: FLEET.busy(rate) * (2.2 if rate > 5 else 1))
    usual = after(taught(busy))
    now = busy.requests(risen, 77, first_minute=24 * 60)
    of_load = now.filter(pa.array(minutes_of(now) >= 24 * 60 + 30))
    yesterday = busy.requests(np.full(30, 2.0), 78)
    p99 = [np.quantile(t.column(TTFT).to_numpy(), 0.99) for t in (of_load, yesterday)]
    assert p99[0] > 1.5 * p99[1]  # the plain rule would be true
    assert judged(usual, now) is None


@pytest.mark.parametrize("rate", [2.2, 5.0, 7.5])
def test_a_slowdown_by_two_pages_within_five_minutes(a_day: Taught, rate: float) -> None:
    usual = after(a_day)
    healthy = FLEET.requests(np.full(30, rate), 5, first_minute=24 * 60)
    assert judged(usual, healthy) is None
    slow = FLEET.requests(np.full(10, rate), 6, slow=2.0, first_minute=24 * 60 + 30)
    found = judged(usual, slow)
    assert found is not None and found <= 5


def test_an_hour_that_was_late_too_often_is_not_learnt_from_until_it_lasts_a_day() -> None:
    usual = after(taught(FLEET, days=3))
    flat = np.full(60, 3.0)
    for hour in range(96, 123):
        usual.take(FLEET.requests(flat, hour, slow=2.5, first_minute=60 * hour))
    cells = usual.take_rows().to_pylist()
    left_out = {c["hour_ns"] for c in cells if c["left_out"]}
    assert left_out == {samples.T0 + hour * HOUR for hour in range(96, 120)}
    assert not left_out & {c["hour_ns"] for c in cells if not c["left_out"]}


def test_what_is_new_is_learnt_first(a_day: Taught) -> None:
    usual = after(a_day)
    for hour in (24, 25):
        usual.take(FLEET.requests(np.full(60, 3.0), hour, slow=2.5, first_minute=60 * hour))
    assert not any(usual.take_rows().column("left_out").to_pylist())


def test_another_model_is_no_measure() -> None:
    usual = after(taught(FLEET))
    other = FLEET.requests(np.full(10, 4.0), 7, first_minute=24 * 60)
    at = other.column_names.index("model")
    other = other.set_column(at, "model", pa.array(["large"] * len(other)).dictionary_encode())
    assert np.isnan(usual.take(other.cast(REQUESTS))[TTFT]).all()


def test_more_load_than_was_ever_seen_has_no_deadline(
    a_day: Taught,
) -> None:
    usual = after(a_day)
    now = FLEET.requests(np.full(20, 40.0), 5, first_minute=24 * 60)
    known = np.isfinite(usual.take(now)[TTFT])
    assert not known[minutes_of(now) > 24 * 60 + 1].any()
