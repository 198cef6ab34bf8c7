"""Opens a log after whatever happened to it, and says what was found."""

from dataclasses import dataclass
from pathlib import Path

from tailburn.collector.log.disk import Disk, sync_folder
from tailburn.collector.log.scan import Fault, Scan, scan
from tailburn.collector.log.segments import (
    OpenSegment,
    Segment,
    create_segment,
    reopen_segment,
    segments,
)
from tailburn.collector.log.writer import Bounds, LogWriter


@dataclass(frozen=True)
class Opened:
    """A log that can be written, and what was cut off its end to get there."""

    writer: LogWriter
    torn_bytes: int = 0
    reason: Fault | None = None  # None: nothing was torn


def open_log(
    folder: Path,
    snapshot_position: int = 0,
    bounds: Bounds | None = None,
    disk: Disk | None = None,
) -> Opened:
    """Cuts a torn tail at the last whole record and goes on behind it.

    1. Segments at the end without one whole record are taken away.
    2. The last of the others is cut where its last whole record ends.
    3. Where that leaves no position above `snapshot_position`, the next one begins there: a
       position already accounted for is never given out again.
    Raises `OSError` where the folder can't be read or written.
    """
    disk = disk or Disk()
    folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.parent)
    files = list(segments(folder))
    torn_bytes, reason = 0, None
    floor = snapshot_position + 1
    last: Scan | None = None
    while files and last is None:
        data = files[-1].path.read_bytes()
        found = scan(data)
        if found.torn:
            torn_bytes += found.torn.end - found.torn.start
            reason = found.torn.fault
        if found.records:
            last = found
        else:
            # Its name still tells that all positions below were given out.
            floor = max(floor, files[-1].first_position)
            files.pop().path.unlink()
    next_position = max(floor, last.records[-1].position + 1 if last else 0)
    current = _current(folder, files, last, next_position, disk)
    older = [(s, s.path.stat().st_size) for s in files if s != current.segment]
    writer = LogWriter(folder, older, current, next_position, bounds or Bounds(), disk)
    return Opened(writer, torn_bytes, reason)


def _current(
    folder: Path, files: list[Segment], last: Scan | None, next_position: int, disk: Disk
) -> OpenSegment:
    if last is None or last.sync is None:
        return create_segment(folder, next_position, disk)
    reopened = reopen_segment(files[-1], last.sync, last.end, disk)
    if last.records[-1].position + 1 == next_position:
        return reopened
    reopened.close()
    return create_segment(folder, next_position, disk)
