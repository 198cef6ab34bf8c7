"""Same-hour baselines: each rule by hand, and all of them against a slow oracle."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.engine import histogram, rollup
from tailburn.engine.baseline import Baseline, Day, Incident, hours, same_hour
from tests.engine.store import samples

CLOCK = "ttft_gateway_s"
BY = ("service", "model", "request_type", "replica")
MINUTE = rollup.MINUTE_NS
HOUR = 60 * MINUTE
NOW = samples.T0 + 10 * 24 * HOUR


def seen(day: float, count: int, value_s: float = 0.2, **names: str) -> list[dict[str, Any]]:
    """Requests spread over ten minutes around this time of day, `day` days back."""
    centre = NOW - round(day * 24 * 60) * MINUTE
    base = {"model": "m", "request_type": "chat", "replica": "r1"} | names
    return [
        samples.request(0, received_ns=centre + (i % 10 - 5) * MINUTE, **{CLOCK: value_s}, **base)
        for i in range(count)
    ]


def folded(*parts: list[dict[str, Any]]) -> pa.Table:
    return rollup.fold(samples.requests(*(row for part in parts for row in part)))


def asked(rows: pa.Table, *incidents: Incident, replica: str = "r1", **more: Any) -> Baseline:
    found = same_hour(rows, CLOCK, BY, NOW, incidents, **({"minimum": 20} | more))
    return found.one(found.series.column("replica").to_pylist().index(replica))


def incident(day: int, **where: str) -> Incident:
    start = NOW - day * 24 * HOUR
    return Incident(start, start + 5 * MINUTE, "chat paged", where)


def near(value_s: float) -> Any:
    return pytest.approx(value_s, rel=1.1 * histogram.RELATIVE_ERROR)


def test_the_median_of_three_days_is_the_baseline() -> None:
    rows = folded(seen(1, 20, 0.2), seen(2, 30, 0.9), seen(3, 25, 0.3))
    found = asked(rows)
    assert found.value_s == near(0.3)
    assert [(day[0], day[1]) for day in found.days] == [(Day.USED, n) for n in (20, 30, 25)]
    assert (found.pooled, found.own_count, found.needs_s) == ((), 75, None)


def test_of_two_days_it_is_their_mean_as_prometheus_has_it() -> None:
    assert asked(folded(seen(1, 20, 0.2), seen(2, 20, 0.4))).value_s == near(0.3)


def test_a_thin_day_is_not_used_and_says_so() -> None:
    found = asked(folded(seen(1, 19, 5.0), seen(2, 20, 0.4)))
    assert found.value_s == near(0.4)
    assert [day[0] for day in found.days] == [Day.THIN, Day.USED, Day.YOUNG]
    assert "1 d ago not used: 19 requests" in found.told()


def test_yesterdays_incident_does_not_hide_todays() -> None:
    rows = folded(seen(1, 50, 9.0), seen(2, 20, 0.4))
    assert asked(rows).value_s == near(4.7)
    found = asked(rows, incident(1, model="m"))
    assert found.value_s == near(0.4)
    assert found.days[0][:3] == (Day.EXCLUDED, 0, 50)
    assert found.reasons == ("chat paged",)
    assert "left out: chat paged" in found.told()


@pytest.mark.parametrize("where", [{"model": "other"}, {"replica": "r2"}])
def test_an_incident_elsewhere_excludes_nothing_here(where: dict[str, str]) -> None:
    assert asked(folded(seen(1, 20, 0.2)), incident(1, **where)).days[0][0] == Day.USED


def test_an_incident_that_ended_before_the_hour_excludes_nothing() -> None:
    since, _ = hours(NOW)[0]
    rows = folded(seen(1, 20))
    assert asked(rows, Incident(since - HOUR, since - 1, "over")).days[0][0] == Day.USED
    assert asked(rows, Incident(since - HOUR, since, "on")).days[0][0] == Day.EXCLUDED
    assert asked(rows, Incident(since - HOUR, None, "still on")).days[0][0] == Day.EXCLUDED


def test_a_new_replica_takes_the_baseline_of_all_replicas() -> None:
    rows = folded(seen(1, 40, 0.3, replica="r2"), seen(0.01, 5))
    found = asked(rows)
    assert (found.value_s, found.pooled) == (near(0.3), ("replica",))
    assert found.days[0][:2] == (Day.USED, 40)
    assert "of all replica together" in found.told()


@pytest.mark.parametrize(
    ("other", "pooled"),
    [
        ({"request_type": "code"}, ("request_type", "replica")),
        ({"request_type": "code", "model": "n"}, ("model", "request_type", "replica")),
        ({"service": "mail"}, None),
    ],
    ids=["another type", "another model", "another service is never pooled"],
)
def test_dimensions_are_given_up_in_order(
    other: dict[str, str], pooled: tuple[str, ...] | None
) -> None:
    found = asked(folded(seen(1, 40, 0.3, replica="r2", **other), seen(0.01, 5)))
    if pooled is None:
        assert found.value_s is None
    else:
        assert (found.value_s, found.pooled) == (near(0.3), pooled)


def test_an_incident_of_one_replica_leaves_its_siblings_in_the_pool() -> None:
    rows = folded(seen(1, 40, 9.0), seen(1, 30, 0.3, replica="r2"))
    found = asked(rows, incident(1, replica="r1"))
    assert (found.value_s, found.pooled) == (near(0.3), ("replica",))
    assert found.days[0][:3] == (Day.USED, 30, 40)


def test_a_young_series_says_how_much_longer() -> None:
    # Since two hours at ten a minute: twenty take 2 min of the hour that starts 23.5 h later.
    rows = folded(*(seen((120 - m) / 1440, 10) for m in range(0, 115, 10)), seen(20 / 1440, 540))
    found = asked(rows)
    assert found.value_s is None
    assert {day[0] for day in found.days} == {Day.YOUNG}
    first = int(np.min(rows.column("minute_ns").to_numpy()))
    assert found.needs_s is not None
    assert found.needs_s > (first - NOW) / 1e9 + 23.5 * 3600
    assert found.needs_s == found.soonest_s
    assert "the SLO alone decides for 21." in found.told()


def test_a_series_too_rare_for_an_hour_never_promises_a_baseline() -> None:
    assert asked(folded(seen(0.01, 5)), minimum=300).needs_s is None


def test_a_gap_is_told_from_youth() -> None:
    found = asked(folded(seen(2, 20, 0.4), seen(0.01, 5)))
    assert [day[0] for day in found.days] == [Day.EMPTY, Day.USED, Day.YOUNG]
    assert found.needs_s is None


def test_what_a_newer_version_took_back_does_not_count() -> None:
    rows = samples.requests(*seen(1, 25))
    both = pa.concat_tables([rollup.fold(rows), rollup.fold(rows.slice(0, 10), sign=-1)])
    assert asked(both).days[0][:2] == (Day.THIN, 15)


def test_nothing_seen_is_no_series() -> None:
    assert len(same_hour(folded(), CLOCK, BY, NOW)) == 0
    assert len(same_hour(folded(), CLOCK, (), NOW)) == 0


def test_without_dimensions_all_is_one_series() -> None:
    found = same_hour(folded(seen(1, 300), seen(1, 5, replica="r2")), CLOCK, (), NOW)
    assert (found.one(0).series, found.day_count[0, 0]) == ({}, 305)


@pytest.mark.parametrize("bad", [{"days": 0}, {"minimum": 0}])
def test_no_days_and_no_requests_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one day and one request"):
        same_hour(folded(), CLOCK, BY, NOW, **bad)


histories = st.lists(
    st.builds(
        seen,
        st.sampled_from([1, 2, 3, 0.5, 0.01]),
        st.integers(1, 6),
        st.floats(0.01, 50),
        model=st.sampled_from("mn"),
        request_type=st.sampled_from(["chat", "code"]),
        replica=st.sampled_from(["r1", "r2", "r3"]),
    ),
    min_size=1,
    max_size=12,
)
troubles = st.lists(
    st.builds(
        incident,
        st.integers(1, 3),
        model=st.sampled_from("mn"),
        replica=st.sampled_from(["r1", "r2"]),
    ),
    max_size=2,
)


def oracle(
    rows: list[dict[str, Any]], past: list[Incident], key: tuple[str, ...], minimum: int
) -> tuple[int, float | None]:
    """Level and baseline of one series, one request at a time, from exact quantiles."""
    for level, kept in enumerate((BY, BY[:3], BY[:2], BY[:1])):
        values = []
        for since, until in hours(NOW):
            mine = [
                row[CLOCK]
                for row in rows
                if all(row[n] == v for n, v in zip(kept, key, strict=False))
                and since <= row["received_ns"] < until
                and not any(
                    i.overlaps(since, until) and all(row[n] == v for n, v in i.where.items())
                    for i in past
                )
            ]
            if len(mine) >= minimum:
                values.append(sorted(mine)[histogram.rank_of(0.9, len(mine)) - 1])
        if values:
            return level, float(np.median(values))
    return -1, None


@settings(max_examples=60, deadline=None)
@given(histories, troubles, st.integers(1, 8))
def test_a_slow_oracle_agrees(
    parts: list[list[dict[str, Any]]], past: list[Incident], minimum: int
) -> None:
    rows = [row for part in parts for row in part]
    found = same_hour(folded(rows), CLOCK, BY, NOW, past, minimum=minimum, q=0.9)
    for row in range(len(found)):
        one = found.one(row)
        level, value = oracle(rows, past, tuple(one.series[n] for n in BY), minimum)
        assert int(found.level[row]) == level
        assert one.value_s == (None if value is None else near(value))


@settings(max_examples=30, deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_the_order_of_rollups_and_their_pieces_change_nothing(
    parts: list[list[dict[str, Any]]], random: Any
) -> None:
    whole = same_hour(folded(*parts), CLOCK, BY, NOW, minimum=4)
    pieces = [folded(part) for part in parts]
    random.shuffle(pieces)
    again = same_hour(pa.concat_tables(pieces), CLOCK, BY, NOW, minimum=4)
    assert sorted(whole.one(i).told() for i in range(len(whole))) == sorted(
        again.one(i).told() for i in range(len(again))
    )


@settings(max_examples=30, deadline=None)
@given(histories, histories)
def test_more_requests_never_send_a_series_to_a_further_parent(
    parts: list[list[dict[str, Any]]], more: list[list[dict[str, Any]]]
) -> None:
    before = same_hour(folded(*parts), CLOCK, BY, NOW, minimum=4)
    after = same_hour(folded(*parts, *more), CLOCK, BY, NOW, minimum=4)
    levels = {str(after.one(i).series): int(after.level[i]) for i in range(len(after))}
    for i in range(len(before)):
        if before.level[i] >= 0:
            assert 0 <= levels[str(before.one(i).series)] <= before.level[i]
