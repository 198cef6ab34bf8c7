"""Walks the bytes of a segment: whole records, and holes where there are none."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tailburn.collector.log.records import (
    RECORD_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    Header,
    header_at,
    is_whole,
    sync_of,
)


class Fault(StrEnum):
    """Why a stretch of a segment holds no record."""

    CUT_SHORT = "the last record was cut short"
    ZEROS = "filled with zeros"
    CHECKSUM = "a checksum does not match"


@dataclass(frozen=True)
class Hole:
    """Bytes `start` to `end` that hold no whole record."""

    start: int
    end: int
    fault: Fault


@dataclass(frozen=True)
class Scan:
    """All of a segment. `sync` is None where no record could be told from another."""

    sync: bytes | None
    records: list[Header]
    holes: list[Hole]

    @property
    def end(self) -> int:
        """Where the last whole record ends."""
        if self.records:
            return self.records[-1].end
        return SEGMENT_HEADER_BYTES if self.sync else 0

    @property
    def torn(self) -> Hole | None:
        """What lies after the last whole record, as one hole."""
        after = [hole for hole in self.holes if hole.start >= self.end]
        return Hole(after[0].start, after[-1].end, after[0].fault) if after else None


def scan(data: bytes) -> Scan:
    """Finds every whole record of a segment.

    After damage the next record is found by its sync mark, so what follows is not lost. A
    record counts only when its position is above that of the one before it.
    """
    sync = sync_of(data)
    if sync is None:
        holes = [Hole(0, len(data), _fault(data, 0, len(data)))] if data else []
        return Scan(None, [], holes)
    records: list[Header] = []
    holes = []
    for found in _walk(data, sync):
        if isinstance(found, Hole):
            holes.append(found)
        else:
            records.append(found)
    return Scan(sync, records, holes)


def _walk(data: bytes, sync: bytes) -> Iterator[Header | Hole]:
    offset, last_position = SEGMENT_HEADER_BYTES, 0
    while offset < len(data):
        header = header_at(data, offset, sync)
        if header is None or header.position <= last_position:
            following = _next_header(data, offset + 1, sync, last_position)
            end = following.offset if following else len(data)
            yield Hole(offset, end, _fault(data, offset, end))
        elif is_whole(data, header):
            yield header
            last_position, end = header.position, header.end
        else:
            end = min(header.end, len(data))
            yield Hole(offset, end, _fault(data, offset, end, header))
        offset = end


def _next_header(data: bytes, start: int, sync: bytes, last_position: int) -> Header | None:
    offset = data.find(sync, start)
    while offset >= 0:
        header = header_at(data, offset, sync)
        if header is not None and header.position > last_position:
            return header
        offset = data.find(sync, offset + 1)
    return None


def _fault(data: bytes, start: int, end: int, header: Header | None = None) -> Fault:
    if not data[start:end].strip(b"\0"):
        return Fault.ZEROS
    beyond = header.end > len(data) if header else end - start < RECORD_HEADER_BYTES
    return Fault.CUT_SHORT if beyond and end == len(data) else Fault.CHECKSUM
