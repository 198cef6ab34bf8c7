"""The few calls by which the log and the snapshots reach the disk."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Final

from tailburn.collector.errors import Busy, NoRoom

# Linux takes at most 1,024 pieces in one writev.
_MAX_PIECES: Final = 1024


@dataclass(frozen=True)
class Disk:
    """What can fail while a group is written; a test hands in calls that do."""

    writev: Callable[[int, Sequence[bytes]], int] = os.writev
    fdatasync: Callable[[int], None] = os.fdatasync
    ftruncate: Callable[[int, int], None] = os.ftruncate


def write_all(disk: Disk, fd: int, pieces: Sequence[bytes]) -> int:
    """Writes all pieces, however short the single writes are; the number of bytes."""
    total = 0
    rest = list(pieces)
    while rest:
        chunk, rest = rest[:_MAX_PIECES], rest[_MAX_PIECES:]
        size = sum(map(len, chunk))
        written = disk.writev(fd, chunk)
        total += written
        if written < size:
            rest = _after(chunk, written) + rest
    return total


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def is_full(error: OSError) -> bool:
    """Whether the disk, or what this user may have of it, is used up."""
    return error.errno in (ENOSPC, EDQUOT)


def refusal(error: OSError) -> Busy:
    """What a sender is told when the log can't be written."""
    if is_full(error):
        return NoRoom("the disk of the log is full")
    return Busy(f"the log can't be written: {os.strerror(error.errno or 0)}")


def _after(pieces: Sequence[bytes], written: int) -> list[bytes]:
    rest = []
    for piece in pieces:
        if written < len(piece):
            rest.append(piece[written:])
        written = max(0, written - len(piece))
    return rest
