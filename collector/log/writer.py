"""Makes groups of records durable, one at a time, and keeps the log within its bounds."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tailburn.collector.log.disk import Disk, refusal, sync_folder, write_all
from tailburn.collector.log.records import Encoder, Entry
from tailburn.collector.log.segments import OpenSegment, Segment, create_segment

SEGMENT_BYTES: Final = 64 * 1024 * 1024
MAX_BYTES: Final = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True)
class Bounds:
    """How large a log may get. A segment is ended by the first group after `segment_bytes`."""

    segment_bytes: int = SEGMENT_BYTES
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        # Whole segments are trimmed: with fewer than four, one in use could fill the log.
        if self.max_bytes < 4 * self.segment_bytes:
            raise ValueError(
                f"a log of {self.max_bytes:,} bytes needs room for four segments"
                f" of {self.segment_bytes:,} bytes"
            )


class LogWriter:
    """The end of a log. `append` is for one thread; `trim` may be called from another.

    `open_log` makes one. Positions are dense: those of a group that failed are used again.
    """

    def __init__(
        self,
        folder: Path,
        older: Sequence[tuple[Segment, int]],
        current: OpenSegment,
        next_position: int,
        bounds: Bounds,
        disk: Disk,
    ) -> None:
        """`older` are the ended segments with their lengths, lowest position first."""
        self._folder = folder
        self._older = list(older)
        self._current = current
        self._next_position = next_position
        self._bounds = bounds
        self._disk = disk
        self._encoder = Encoder()
        self._lock = threading.Lock()  # guards _older, _current and their sizes
        self._older_bytes = sum(length for _, length in older)
        self._leftover = False  # bytes of a failed group may lie after the durable ones
        self._unsynced = False  # a sync failed: this file can't be trusted with more
        self._trouble: str | None = None
        self.appended_bytes = 0  # since this writer was made

    @property
    def next_position(self) -> int:
        """The position the next record gets."""
        return self._next_position

    @property
    def last_position(self) -> int:
        """The last position that a record got."""
        return self._next_position - 1

    @property
    def total_bytes(self) -> int:
        """The size of all segments."""
        with self._lock:
            return self._older_bytes + self._current.length

    @property
    def is_full(self) -> bool:
        """Whether the log has reached its bound and waits to be trimmed."""
        return self.total_bytes >= self._bounds.max_bytes

    @property
    def trouble(self) -> str | None:
        """Why the last group could not be written; None when it could."""
        return self._trouble

    def append(self, group: Sequence[Entry], compress: bool = True) -> int:
        """Makes a group durable; the position of its first record, the others follow densely.

        All or nothing: raises `NoRoom` where the disk is full and `Busy` on any other failure
        of the disk, and nothing of the group is left. The next call tries anew. `compress`ed,
        spans take a fifth of the bytes and three quarters more CPU.
        """
        try:
            self._make_ready()
            written = self._write(group, compress)
        except OSError as error:
            problem = refusal(error)
            self._trouble = str(problem)
            with suppress(OSError):  # then the next call tries before it writes
                self._take_back()
            raise problem from error
        self._trouble = None
        self.appended_bytes += written
        with self._lock:
            self._current.length += written
        first = self._next_position
        self._next_position += len(group)
        return first

    def trim(self, before_position: int) -> int:
        """Removes the segments that hold only positions below; the number of bytes freed."""
        freed = 0
        while popped := self._pop_below(before_position):
            segment, length = popped
            freed += length
            segment.path.unlink(missing_ok=True)
        if freed:
            sync_folder(self._folder)
        return freed

    def close(self) -> None:
        """Lets go of the file; everything appended is durable already."""
        self._current.close()

    def _write(self, group: Sequence[Entry], compress: bool) -> int:
        pieces: list[bytes] = []
        for i, entry in enumerate(group):
            pieces += self._encoder.record(
                entry, self._next_position + i, self._current.sync, compress
            )
        self._leftover = True
        written = write_all(self._disk, self._current.fd, pieces)
        self._unsynced = True
        self._disk.fdatasync(self._current.fd)
        self._leftover = self._unsynced = False
        return written

    def _make_ready(self) -> None:
        """Takes away what a failed group left, and begins a new segment where one is due."""
        self._take_back()
        # Of a deleted file each write succeeds, and a restart finds nothing of it.
        is_gone = os.fstat(self._current.fd).st_nlink == 0
        if is_gone or self._unsynced or self._current.length >= self._bounds.segment_bytes:
            self._begin_segment()

    def _take_back(self) -> None:
        if self._leftover:
            self._disk.ftruncate(self._current.fd, self._current.length)
            self._leftover = False

    def _begin_segment(self) -> None:
        # After a failed sync the kernel may call pages clean that never reached the disk, so
        # the file is left alone from then on. What was synced before stays readable.
        ended = self._current
        if ended.is_empty:
            ended.segment.path.unlink(missing_ok=True)
        current = create_segment(self._folder, self._next_position, self._disk)
        with self._lock:
            if not ended.is_empty:
                self._older.append((ended.segment, ended.length))
                self._older_bytes += ended.length
            self._current = current
        ended.close()
        self._unsynced = False

    def _pop_below(self, position: int) -> tuple[Segment, int] | None:
        with self._lock:
            following = [*(s for s, _ in self._older[1:]), self._current.segment]
            if not self._older or following[0].first_position > position:
                return None
            popped = self._older.pop(0)
            self._older_bytes -= popped[1]
            return popped
