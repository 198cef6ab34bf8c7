"""Where a segment lies and what its name says.

    STORE/<table>/YYYY-MM-DD/HH/<first>-<last>-<n>.parquet                      as published
    STORE/<table>/YYYY-MM-DD/HH/<first>-<last>-<from>-<to>.{merged,thinned}.parquet

`first` and `last` are log positions. `n` counts up within the hour; a merged or thinned
segment replaces every segment numbered within `from` and `to`, so that its rename is the one
instant at which a compaction happens.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from tailburn.engine.store.api import LogRange, Window

HOUR_NS: Final = 3_600_000_000_000
TEMPORARY_SUFFIX: Final = ".tmp"
_NAME: Final = re.compile(r"(\d+)-(\d+)-(\d+)(?:-(\d+)\.(merged|thinned))?\.parquet")
_LISTINGS: Final = 8


class Stage(StrEnum):
    """How far compaction has come with a segment."""

    PUBLISHED = "published"
    MERGED = "merged"
    THINNED = "thinned"


@dataclass(frozen=True)
class Segment:
    """One Parquet file of one table and receive hour."""

    table: str
    hour_ns: int
    log: LogRange
    first: int  # numbers within the hour that it stands for
    last: int
    stage: Stage
    path: Path


def hour_of(ns: int) -> int:
    """Start of the hour that holds `ns`."""
    return ns - ns % HOUR_NS


def hour_folder(root: Path, table: str, hour_ns: int) -> Path:
    """The folder of an hour, whether or not it is there."""
    when = datetime.fromtimestamp(hour_ns // 1_000_000_000, UTC)
    return root / table / when.strftime("%Y-%m-%d") / when.strftime("%H")


def published_name(log: LogRange, n: int) -> str:
    """The file name of a segment as published."""
    return f"{log.first}-{log.last}-{n}.parquet"


def replacement_name(inputs: Sequence[Segment], stage: Stage) -> str:
    """The file name of what replaces consecutive segments of one hour."""
    first = min(s.log.first for s in inputs)
    last = max(s.log.last for s in inputs)
    return f"{first}-{last}-{inputs[0].first}-{inputs[-1].last}.{stage}.parquet"


def segments(root: Path, table: str, window: Window) -> list[Segment]:
    """The segments whose hour touches the window, oldest hour first, then in order of number."""
    found: list[Segment] = []
    for hour_ns, folder in _hours(root / table, window):
        found += _in_hour(table, hour_ns, folder)
    return found


def segments_of_hour(root: Path, table: str, hour_ns: int) -> list[Segment]:
    """The segments of one hour, in order of number."""
    return _in_hour(table, hour_ns, hour_folder(root, table, hour_ns))


def hours(root: Path, table: str) -> list[tuple[int, list[Segment]]]:
    """Every hour of a table with its segments, oldest first."""
    return [
        (hour_ns, _in_hour(table, hour_ns, folder))
        for hour_ns, folder in _hours(root / table, Window())
    ]


def next_number(root: Path, table: str, hour_ns: int) -> int:
    """The number after the highest in an hour, replaced segments included."""
    every = _parse_all(table, hour_ns, hour_folder(root, table, hour_ns))
    return max((s.last for s in every), default=-1) + 1


def replaced(root: Path, table: str) -> list[Path]:
    """Files that a merged segment already stands for."""
    gone: list[Path] = []
    for hour_ns, folder in _hours(root / table, Window()):
        live = {s.path for s in _in_hour(table, hour_ns, folder)}
        gone += [s.path for s in _parse_all(table, hour_ns, folder) if s.path not in live]
    return gone


def temporaries(root: Path, table: str) -> Iterator[Path]:
    """Files of writes that never came to their rename."""
    return (root / table).rglob(f"*{TEMPORARY_SUFFIX}")


def _hours(table_root: Path, window: Window) -> Iterator[tuple[int, Path]]:
    since = hour_of(window.since_ns) if window.since_ns is not None else None
    for day in _sorted_folders(table_root):
        for hour in _sorted_folders(day):
            hour_ns = _hour_ns(day.name, hour.name)
            if hour_ns is None or (since is not None and hour_ns < since):
                continue
            if window.until_ns is None or hour_ns < window.until_ns:
                yield hour_ns, hour


def _sorted_folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(e.path) for e in entries if e.is_dir())
    except FileNotFoundError:
        return []


def _hour_ns(day: str, hour: str) -> int | None:
    try:
        when = datetime.strptime(f"{day} {hour}", "%Y-%m-%d %H").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(when.timestamp()) * 1_000_000_000


def _in_hour(table: str, hour_ns: int, folder: Path) -> list[Segment]:
    """The segments that no other stands for: their ranges nest or lie apart."""
    stages = list(Stage)
    every = _parse_all(table, hour_ns, folder)
    every.sort(key=lambda s: (s.first, -s.last, -stages.index(s.stage)))
    live: list[Segment] = []
    for segment in every:
        if not live or segment.last > live[-1].last:
            live.append(segment)
    return live


def _parse_all(table: str, hour_ns: int, folder: Path) -> list[Segment]:
    parsed = []
    for name in _stable_listing(folder):
        match = _NAME.fullmatch(name)
        if match:
            log = LogRange(int(match[1]), int(match[2]))
            first, last = int(match[3]), int(match[4] or match[3])
            stage = Stage(match[5] or "published")
            parsed.append(Segment(table, hour_ns, log, first, last, stage, folder / name))
    return parsed


def _stable_listing(folder: Path) -> list[str]:
    """The names in a folder as they were at one instant.

    A listing is not atomic: one that runs across a compaction could miss both the merged
    segment and what it replaced. The folder's change time tells.
    """
    names: list[str] = []
    for _ in range(_LISTINGS):
        try:
            before = folder.stat().st_mtime_ns
            names = os.listdir(folder)
            if folder.stat().st_mtime_ns == before:
                break
        except FileNotFoundError:
            return []
    return names
