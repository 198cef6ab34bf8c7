"""Where a calendar window begins and ends: midnights of its time zone, as ns since the epoch."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from tailburn.engine.slo.model import Calendar

_NS: Final = 1_000_000_000
_MONTHS: Final = {"month": 1, "quarter": 3}


def period_of(calendar: Calendar, now_ns: int) -> tuple[int, int]:
    """Begin and end of the period that holds `now_ns`; weeks begin on Monday.

    A day on which the clocks change is 23 or 25 hours long. Raises `ZoneInfoNotFoundError`.
    """
    zone = ZoneInfo(calendar.time_zone)
    today = datetime.fromtimestamp(now_ns // _NS, UTC).astimezone(zone)
    first = today.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if calendar.period == "day":
        end = first + timedelta(days=1)
    elif calendar.period == "week":
        first -= timedelta(days=first.weekday())
        end = first + timedelta(days=7)
    else:
        months = _MONTHS[calendar.period]
        first = first.replace(day=1, month=first.month - (first.month - 1) % months)
        end = (first + timedelta(days=31 * months)).replace(day=1)
    return _midnight_ns(first, zone), _midnight_ns(end, zone)


def _midnight_ns(day: datetime, zone: ZoneInfo) -> int:
    return int(datetime.combine(day.date(), time(), zone).timestamp()) * _NS
