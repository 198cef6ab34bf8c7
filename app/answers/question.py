"""What a reader asks for: a span of receive time, and values that columns must have."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from tailburn.app.errors import UserError
from tailburn.engine.store.api import Window

_UNIT_NS = {
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_LAST_NS = 1 << 63


@dataclass(frozen=True)
class Question:
    """A window of receive times and equalities on columns of `requests`."""

    window: Window = field(default_factory=Window)
    where: dict[str, str] = field(default_factory=dict)

    def earlier(self, ago_ns: int) -> "Question":
        """The same of the window so long before; this one's must have both ends."""
        window = self.window
        assert window.since_ns is not None and window.until_ns is not None
        return replace(self, window=Window(window.since_ns - ago_ns, window.until_ns - ago_ns))


def question(
    since: str | None,
    until: str | None,
    model: str | None,
    where: Sequence[str],
    now_ns: int,
) -> Question:
    """A question as typed. Raises UserError for a time or a filter that is neither."""
    begin = _time("--since", since, now_ns)
    end = _time("--until", until, now_ns)
    if begin is not None and end is not None and begin >= end:
        raise UserError(f"--since {since} is not before --until {until}")
    filters = dict(_equality(text) for text in where)
    if model is not None:
        filters["model"] = model
    return Question(Window(begin, end), filters)


def duration_ns(flag: str, text: str) -> int:
    """A stretch of time as typed, such as 90s or 24h. Raises UserError."""
    if not (ns := _duration_ns(text)):
        raise UserError(f"{flag} {text!r}: want a duration such as 500ms, 15m or 24h")
    return ns


def span_ns(flag: str, text: str, now_ns: int) -> tuple[int, int]:
    """From a time to another, `FROM..TO`, each as --since is. Raises UserError."""
    begin, dots, end = text.partition("..")
    if not dots:
        raise UserError(f"{flag} {text!r}: want FROM..TO, such as 3d..2d")
    since_ns, until_ns = (_time(flag, part.strip(), now_ns) or 0 for part in (begin, end))
    if since_ns >= until_ns:
        raise UserError(f"{flag} {text!r}: {begin} is not before {end}")
    return since_ns, until_ns


def _duration_ns(text: str) -> int | None:
    parts = _DURATION.fullmatch(text.strip())
    return round(float(parts[1]) * _UNIT_NS[parts[2]]) if parts else None


def _equality(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UserError(f"--where {text!r}: want key=value, such as replica=engine-0")
    return key.strip(), value


def _time(flag: str, text: str | None, now_ns: int) -> int | None:
    """Nanoseconds since the epoch: `now_ns` less a duration, or an ISO time (UTC unless told)."""
    if text is None:
        return None
    if (ago_ns := _duration_ns(text)) is not None:
        return now_ns - ago_ns
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(
            f"{flag} {text!r}: want a duration such as 90s, 15m, 1h, 7d "
            "or a time such as 2026-12-01T17:14:00Z"
        ) from None
    ns = _epoch_ns(moment)
    if not 0 <= ns < _LAST_NS:
        raise UserError(f"{flag} {text!r}: want a time after 1970 and before 2262")
    return ns


def _epoch_ns(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
