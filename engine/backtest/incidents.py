"""Incidents as people mark them: start, end and name, in CSV or YAML, each time with its zone."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from tailburn.engine.problems import Problem
from tailburn.engine.slo.document import documents

FIELDS: Final = ("start", "end", "name")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Marked:
    """Something that happened; `name` may be empty."""

    start_ns: int
    end_ns: int
    name: str


@dataclass(frozen=True)
class Row:
    """What a file says of one incident, and on which line."""

    line: int
    start: str
    end: str
    name: str


def read(
    file: str, text: str, zone: tzinfo | None = None
) -> tuple[tuple[Marked, ...], tuple[Problem, ...]]:
    """The incidents of a text in order of time, or all that is wrong with it.

    YAML by the name of the file (`.yaml`, `.yml`), else CSV with a heading. `zone` is that of
    times that say none; None: each must.
    """
    is_yaml = file.endswith((".yaml", ".yml"))
    rows, problems = _of_yaml(file, text) if is_yaml else _of_csv(file, text)
    found: list[Marked] = []
    for row in rows:
        one = _marked(file, row, zone, problems)
        if one is not None:
            found.append(one)
    if not problems and not found:
        problems.append(Problem(file, 1, "file", "", "holds no incident; want start, end, name"))
    if problems:
        return (), tuple(problems)
    return tuple(sorted(found, key=lambda one: (one.start_ns, one.end_ns))), ()


def _marked(file: str, row: Row, zone: tzinfo | None, problems: list[Problem]) -> Marked | None:
    times = []
    for field, given in (("start", row.start), ("end", row.end)):
        moment, wanted = _time(given, zone)
        if moment is None:
            problems.append(Problem(file, row.line, field, given, wanted))
        else:
            times.append(moment)
    if len(times) < len(("start", "end")):
        return None
    start_ns, end_ns = times
    if end_ns <= start_ns:
        wanted = f"is not after its start, {row.start}; want the later time"
        problems.append(Problem(file, row.line, "end", row.end, wanted))
        return None
    return Marked(start_ns, end_ns, row.name)


def _time(text: str, zone: tzinfo | None) -> tuple[int | None, str]:
    """Nanoseconds since the epoch; or None and what is wanted."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None, "is no time; want one such as 2026-12-01T17:14:00Z"
    if moment.tzinfo is None:
        if zone is None:
            return None, "says no time zone; add Z or +01:00, or give --time-zone"
        moment = moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000, ""


def _of_csv(file: str, text: str) -> tuple[list[Row], list[Problem]]:
    lines = csv.reader(text.splitlines())
    heading = [name.strip().lower() for name in next(lines, [])]
    missing = [name for name in FIELDS[:2] if name not in heading]
    if missing:
        wanted = f"has no column {missing[0]!r}; want start,end,name in the first line"
        return [], [Problem(file, 1, "heading", ",".join(heading), wanted)]
    found, problems = [], []
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(heading):
            wanted = f"has {len(cells)} cells; want {len(heading)}, as the heading has"
            problems.append(Problem(file, lines.line_num, "row", "", wanted))
            continue
        told = dict(zip(heading, cells, strict=True))
        found.append(Row(lines.line_num, told["start"], told["end"], told.get("name", "").strip()))
    return found, problems


def _of_yaml(file: str, text: str) -> tuple[list[Row], list[Problem]]:
    found: list[Row] = []
    problems: list[Problem] = []
    for document in documents(file, text):
        problems.extend(document.problems)
        if document.data is None:
            continue
        if not isinstance(document.data, list):
            problems.append(
                document.problem((), "", "want a list: - {start: ..., end: ..., name: ...}")
            )
            continue
        for number, given in enumerate(document.data):
            line = document.line_of((number,))
            if wanted := _unfit(given):
                problems.append(Problem(file, line, f"[{number}]", "", wanted))
                continue
            found.append(Row(line, given["start"], given["end"], given.get("name") or ""))
    return found, problems


def _unfit(given: object) -> str:
    """What is wanted where an item of a list is no incident; empty where it is."""
    if not isinstance(given, dict) or any(not isinstance(v, str | None) for v in given.values()):
        return "want a mapping: start, end and name"
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        return f"{unknown[0]!r} is not known; want start, end and name"
    missing = [name for name in FIELDS[:2] if not given.get(name)]
    return f"has no {missing[0]}; want a time such as 2026-12-01T17:14:00Z" if missing else ""
