"""Reads a log back in order, over damage."""

from collections.abc import Iterator
from pathlib import Path

from tailburn.collector.log.records import Record, record_at
from tailburn.collector.log.scan import scan
from tailburn.collector.log.segments import Segment, segments


class LogReader:
    """The records of a log above a position. Iterate once, then read the counts."""

    def __init__(self, folder: Path, after_position: int = 0) -> None:
        self._folder = folder
        self._position = after_position
        self.records = 0
        self.missing_records = 0  # positions that are in no whole record
        self.damaged_bytes = 0

    @property
    def position(self) -> int:
        """Of the record read last."""
        return self._position

    def __iter__(self) -> Iterator[Record]:
        files = list(segments(self._folder))
        for i, segment in enumerate(files):
            following = files[i + 1].first_position if i + 1 < len(files) else None
            if following is None or following > self._position + 1:
                yield from self._read(segment)

    def _read(self, segment: Segment) -> Iterator[Record]:
        data = segment.path.read_bytes()
        found = scan(data)
        self.damaged_bytes += sum(hole.end - hole.start for hole in found.holes)
        for header in found.records:
            if header.position > self._position:
                self.missing_records += header.position - self._position - 1
                self.records += 1
                self._position = header.position
                yield record_at(data, header)
