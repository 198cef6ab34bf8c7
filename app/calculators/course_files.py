"""Courses of traffic from files: rows of `time,requests,bad`."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from tailburn.app.calculators.courses import amount
from tailburn.app.errors import UserError
from tailburn.app.slo_files import SIZE_LIMIT_BYTES
from tailburn.engine.slo.course import Stretch, gap

COLUMNS: Final = ("time", "requests", "bad")
MOST_STRETCHES: Final = 100_000  # ten weeks of minutes
MOST_TOLD: Final = 20


def course_of_file(path: Path) -> list[Stretch]:
    """The rows of a CSV file; see `course_of_rows`. Raises UserError where it can't be read."""
    try:
        with path.open("rb") as stream:
            content = stream.read(SIZE_LIMIT_BYTES + 1)
        if len(content) > SIZE_LIMIT_BYTES:
            raise UserError(f"{path}: larger than {SIZE_LIMIT_BYTES // 1024**2} MiB; shorten it")
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: can't be read: byte {error.start} is no UTF-8") from error
    return course_of_rows(str(path), text)


def course_of_rows(name: str, text: str) -> list[Stretch]:
    """Rows of `time,requests,bad`, each up to the time of the next and the last as long as that.

    A time is seconds since the epoch or ISO 8601; an empty `requests` is a gap in the data.
    Raises UserError with every wrong line.
    """
    rows = list(_rows(name, text))
    wrong = [row for row in rows if isinstance(row, str)]
    if len(wrong) > MOST_TOLD:
        wrong[MOST_TOLD:] = [f"{name}: and {len(wrong) - MOST_TOLD:,} lines more are wrong"]
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
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            wanted = f"want a first line {','.join(COLUMNS)}"
            yield f"{name}:1: no column {', '.join(missing)}; {wanted}"
            return
        for row in reader:
            try:
                yield (reader.line_num, *_values(row))
            except ValueError as error:
                yield f"{name}:{reader.line_num}: {error}"
    except csv.Error as error:
        yield f"{name}:{reader.line_num + 1}: {error}; want rows of {','.join(COLUMNS)}"


def _values(row: dict[str, str | None]) -> tuple[float, float | None, float]:
    time, requests, bad = ((row[column] or "").strip() for column in COLUMNS)
    at_s = _moment_s(time)
    if not requests:
        if bad:
            raise ValueError(f"bad {bad!r} without requests; leave both empty for a gap")
        return at_s, None, 0.0
    counted, over = amount(requests, "requests"), amount(bad, "bad requests")
    if over > counted:
        raise ValueError(f"bad {bad} of {requests} requests; want at most all of them")
    return at_s, counted, over


def _moment_s(text: str) -> float:
    try:
        return amount(text, "seconds")
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
