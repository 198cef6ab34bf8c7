"""The files of a log: one per stretch of positions, named by the first."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.collector.log.disk import Disk, sync_folder, write_all
from tailburn.collector.log.records import SEGMENT_HEADER_BYTES, new_sync, segment_header

_NAME: Final = re.compile(r"(\d{20})\.log")


@dataclass(frozen=True)
class Segment:
    """A segment file. What it holds begins at `first_position`."""

    path: Path
    first_position: int


@dataclass
class OpenSegment:
    """The segment that is being written. `length` is what is durable, not what is there."""

    segment: Segment
    fd: int
    sync: bytes
    length: int

    @property
    def is_empty(self) -> bool:
        return self.length <= SEGMENT_HEADER_BYTES

    def close(self) -> None:
        os.close(self.fd)


def segments(folder: Path) -> Iterator[Segment]:
    """Every segment, lowest position first."""
    for path in sorted(folder.iterdir()):
        if match := _NAME.fullmatch(path.name):
            yield Segment(path, int(match[1]))


def create_segment(folder: Path, first_position: int, disk: Disk) -> OpenSegment:
    """A new segment with a durable name and header; leaves nothing behind on `OSError`."""
    path = folder / f"{first_position:020d}.log"
    sync = new_sync()
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        length = write_all(disk, fd, [segment_header(first_position, sync)])
        disk.fdatasync(fd)
        sync_folder(folder)
    except OSError:
        os.close(fd)
        path.unlink()
        raise
    return OpenSegment(Segment(path, first_position), fd, sync, length)


def reopen_segment(segment: Segment, sync: bytes, length: int, disk: Disk) -> OpenSegment:
    """An old segment to go on with, cut to `length`."""
    fd = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_size != length:
            disk.ftruncate(fd, length)
            disk.fdatasync(fd)
    except OSError:
        os.close(fd)
        raise
    return OpenSegment(segment, fd, sync, length)
