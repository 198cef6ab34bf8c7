"""Entries to write, and what a log gives back."""

import random
from pathlib import Path

from tailburn.collector.log import Entry, Kind, LogReader, Record


def entry(n: int, size: int = 20) -> Entry:
    """The `n`th entry: no two alike, the body not to be compressed."""
    return Entry(Kind.TRACES, 1_000 + n, f"tenant-{n % 3}", random.Random(n).randbytes(size))


def entries(first: int, count: int, size: int = 20) -> list[Entry]:
    return [entry(n, size) for n in range(first, first + count)]


def read(folder: Path, after: int = 0) -> list[Record]:
    return list(LogReader(folder, after))


def as_entry(record: Record) -> Entry:
    """What was written, by what was read."""
    return Entry(
        record.kind, record.received_ns, record.tenant, bytes(record.body), record.rejected
    )


def written(folder: Path) -> list[Entry]:
    return [as_entry(record) for record in read(folder)]


def only_file(folder: Path) -> Path:
    (path,) = folder.glob("*.log")
    return path
