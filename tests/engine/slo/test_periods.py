"""Calendar windows: midnights of a time zone, also where clocks change."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.slo.model import Calendar
from tailburn.engine.slo.periods import period_of


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("calendar", "now", "begin", "end"),
    [
        (Calendar("day"), "2026-12-31T23:59:59Z", "2026-12-31T00:00Z", "2027-01-01T00:00Z"),
        (Calendar("week"), "2026-12-06T12:00Z", "2026-11-30T00:00Z", "2026-12-07T00:00Z"),
        (Calendar("month"), "2028-02-29T12:00Z", "2028-02-01T00:00Z", "2028-03-01T00:00Z"),
        (Calendar("month"), "2026-12-31T12:00Z", "2026-12-01T00:00Z", "2027-01-01T00:00Z"),
        (Calendar("quarter"), "2026-12-31T12:00Z", "2026-10-01T00:00Z", "2027-01-01T00:00Z"),
        (Calendar("quarter"), "2026-02-01T00:00Z", "2026-01-01T00:00Z", "2026-04-01T00:00Z"),
        (
            Calendar("day", "Europe/Berlin"),  # 23 hours
            "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z",
        ),
        (
            Calendar("month", "America/New_York"),  # begins in summer time, ends in winter time
            "2026-11-01T03:59Z", "2026-10-01T04:00Z", "2026-11-01T04:00Z",
        ),
    ],
)  # fmt: skip
def test_a_period_goes_from_midnight_to_midnight(
    calendar: Calendar, now: str, begin: str, end: str
) -> None:
    assert period_of(calendar, ns(now)) == (ns(begin), ns(end))


@given(
    st.sampled_from(["day", "week", "month", "quarter"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
)
def test_periods_follow_each_other_without_a_gap(period: str, zone: str, now: datetime) -> None:
    calendar = Calendar(period, zone)  # type: ignore[arg-type]
    now_ns = int(now.timestamp()) * 10**9
    begin_ns, end_ns = period_of(calendar, now_ns)
    assert begin_ns <= now_ns < end_ns
    assert period_of(calendar, end_ns)[0] == end_ns
    assert period_of(calendar, begin_ns - 10**9)[1] == begin_ns
    assert end_ns - begin_ns <= timedelta(days=93).total_seconds() * 1e9
