"""Courses of traffic as people write them: `10%:20m` on the command line, or rows of a file."""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from tailburn.app.errors import UserError
from tailburn.engine.slo.course import Stretch, gap
from tailburn.engine.slo.quantities import read_percent, read_time_s

WANTED = "want SHARE:DURATION such as 10%:20m, with @REQUESTS_PER_S if you like, or gap:5m"
COLUMNS = ("time", "requests", "bad")
MOST_STRETCHES = 100_000  # ten weeks of minutes

_STRETCH = re.compile(r"(?P<share>[^:@]+):(?P<lasts>[^:@]+)(?:@(?P<rate>[^:@]+))?")
_LONGEST_S = 366 * 86_400.0


def stretches_of(texts: Sequence[str]) -> list[Stretch]:
    """`10%:20m`, `0.5%:1h@20` and `gap:5m`, in order. Raises UserError with all that is wrong."""
    found: list[Stretch] = []
    wrong: list[str] = []
    for text in texts:
        try:
            found.append(_stretch(text))
        except ValueError as error:
            wrong.append(f"{text!r}: {error}; {WANTED}")
    if wrong:
        raise UserError(*wrong)
    return found


def _stretch(text: str) -> Stretch:
    parts = _STRETCH.fullmatch(text.strip())
    if parts is None:
        raise ValueError("not a share with how long it lasts")
    for_s = _seconds(parts["lasts"].strip())
    if parts["share"].strip() == "gap":
        if parts["rate"] is not None:
            raise ValueError("a gap has no requests that could be counted")
        return gap(for_s)
    rate = 1.0 if parts["rate"] is None else _number(parts["rate"], "requests per second")
    return Stretch(for_s, _ratio(parts["share"].strip()), rate)


def _ratio(text: str) -> float:
    share = read_percent(text) if text.endswith("%") else None
    if share is None:
        raise ValueError(f"{text!r} is no percent")
    if share > 1:
        raise ValueError(f"{text} is over 100%")
    return share


def _seconds(text: str) -> float:
    seconds = read_time_s(text)
    if seconds is None:
        raise ValueError(f"{text!r} is no duration")
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(f"{text} is not between 0 and 366d")
    return seconds


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{text.strip()!r} is not a number of {what} from 0 on")
    return number


def shares_of(flag: str, text: str) -> list[float]:
    """Ratios of `1%,10%,100%`. Raises UserError with all that are none."""
    found: list[float] = []
    wrong: list[str] = []
    for part in text.split(","):
        share = read_percent(part.strip()) if "%" in part else None
        if share is None or not 0 < share <= 1:
            wrong.append(f"{flag} {part.strip()!r}: want percents up to 100%, such as 1%,10%,100%")
        else:
            found.append(share)
    if wrong:
        raise UserError(*wrong)
    return found


def course_of_file(path: Path) -> list[Stretch]:
    """The rows of a CSV file; see `course_of_rows`. Raises UserError where it can't be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: can't be read: {error}") from error
    return course_of_rows(str(path), text)


def course_of_rows(name: str, text: str) -> list[Stretch]:
    """Rows of `time,requests,bad`, each up to the time of the next and the last as long as that.

    A time is seconds since the epoch or ISO 8601; an empty `requests` is a gap in the data.
    Raises UserError with every wrong line.
    """
    rows = list(_rows(name, text))
    wrong = [row for row in rows if isinstance(row, str)]
    if wrong:
        raise UserError(*wrong)
    good = [row for row in rows if not isinstance(row, str)]
    if len(good) < 2:
        raise UserError(f"{name}: {len(good)} rows; want at least two of {','.join(COLUMNS)}")
    if len(good) > MOST_STRETCHES:
        raise UserError(f"{name}: {len(good):,} rows; want at most {MOST_STRETCHES:,}")
    return list(_between(name, good))


_Row = tuple[int, float, float | None, float]


def _rows(name: str, text: str) -> Iterator[_Row | str]:
    """Line, seconds, requests (None: a gap) and bad ones; or what is wrong with a line."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
    if missing:
        yield f"{name}:1: no column {', '.join(missing)}; want a first line {','.join(COLUMNS)}"
        return
    for row in reader:
        try:
            yield (reader.line_num, *_values(row))
        except ValueError as error:
            yield f"{name}:{reader.line_num}: {error}"


def _values(row: dict[str, str | None]) -> tuple[float, float | None, float]:
    time, requests, bad = ((row[column] or "").strip() for column in COLUMNS)
    at_s = _moment_s(time)
    if not requests:
        if bad:
            raise ValueError(f"bad {bad!r} without requests; leave both empty for a gap")
        return at_s, None, 0.0
    counted, over = _number(requests, "requests"), _number(bad, "bad requests")
    if over > counted:
        raise ValueError(f"bad {bad} of {requests} requests; want at most all of them")
    return at_s, counted, over


def _moment_s(text: str) -> float:
    try:
        return _number(text, "seconds")
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"time {text!r}: want seconds since 1970 or a time such as 2026-12-01T17:14:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _between(name: str, rows: Sequence[_Row]) -> Iterator[Stretch]:
    lengths = list(_lengths(name, rows))
    for (_, _, requests, bad), for_s in zip(rows, [*lengths, lengths[-1]], strict=True):
        if requests is None:
            yield gap(for_s)
        else:
            yield Stretch(for_s, bad / requests if requests else 0.0, requests / for_s)


def _lengths(name: str, rows: Iterable[_Row]) -> Iterator[float]:
    for (_, before_s, _, _), (line, at_s, _, _) in pairwise(rows):
        if at_s <= before_s:
            raise UserError(f"{name}:{line}: not after the row before it; want rising times")
        yield at_s - before_s
