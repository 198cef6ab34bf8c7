"""What the writer does to past hours: merge, thin, retire."""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from tailburn.engine.schema import TABLES
from tailburn.engine.store.api import (
    ALWAYS,
    Compacted,
    NotDurable,
    Retired,
    UnreadableFile,
    Window,
)
from tailburn.engine.store.compaction import Thin, merge
from tailburn.engine.store.files import Files
from tailburn.engine.store.keeping import Keeping, notable_traces, thin
from tailburn.engine.store.numbering import Numbering
from tailburn.engine.store.retention import hours_over, retire, size_bytes
from tailburn.engine.store.segments import (
    HOUR_NS,
    Segment,
    Stage,
    hours,
    replaced,
    segments,
    temporaries,
)
from tailburn.engine.store.writing import remove

SPILL_FOLDER: Final = "tmp"
LATE_SEGMENTS: Final = 8
GATHERED_SEGMENTS: Final = 32

Closed = Callable[[Window], pa.Table]
"""Requests received in a window, with `keeping.THINNING_COLUMNS`."""


class Upkeep:
    """Upkeep of one store, one step at a time."""

    def __init__(
        self, files: Files, numbering: Numbering, keeping: Keeping, closed: Closed
    ) -> None:
        self._files = files
        self._root = files.root
        self._numbering = numbering
        self._keeping = keeping
        self._closed = closed
        self._lock = threading.Lock()

    def discard_after(self, position: int) -> int:
        """As `Store.discard_after`."""
        shutil.rmtree(self._root / SPILL_FOLDER, ignore_errors=True)
        for table in TABLES:
            remove([*temporaries(self._root, table), *replaced(self._root, table)])
        late = [
            segment
            for table in TABLES
            for segment in segments(self._root, table, ALWAYS)
            if segment.log.last > position
        ]
        for segment in late:
            if segment.stage is not Stage.PUBLISHED:
                raise NotDurable(
                    f"{segment.path}: merged as durable up to {segment.log.last}, "
                    f"but the restart begins after {position}"
                )
        return remove([segment.path for segment in late])

    def compact(self, now_ns: int, durable_position: int) -> Compacted:
        """As `Store.compact`."""
        done = Compacted()
        with self._lock:
            for table in TABLES:
                crowded = self._hours_to_thin(table, now_ns)
                for hour_ns, _ in hours(self._root, table):
                    settled = self._numbering.settled(table, hour_ns, durable_position)
                    past = hour_ns + HOUR_NS <= now_ns
                    inputs = to_merge(settled, past, hour_ns in crowded)
                    if inputs:
                        done = _added(done, self._merge(inputs, hour_ns in crowded))
        return done

    def retain(self, now_ns: int) -> Mapping[str, Retired]:
        """As `Store.retain`."""
        with self._lock:
            return {
                table: retire(self._root, table, self._keeping.of(table), now_ns)
                for table in TABLES
            }

    def _hours_to_thin(self, table: str, now_ns: int) -> list[int]:
        """Hours of spans that are past the bounds of keeping every span and not yet thinned."""
        if table != "spans":
            return []
        full = {
            hour_ns: size_bytes(found)
            for hour_ns, found in hours(self._root, table)
            if any(s.stage is not Stage.THINNED for s in found)
        }
        return hours_over(full, self._keeping.spans_full, now_ns)

    def _merge(self, inputs: list[Segment], thinning: bool) -> Compacted:
        """Some segments merged; nothing where one was found damaged: it is set aside instead."""
        table, hour_ns = inputs[0].table, inputs[0].hour_ns
        spill = self._root / SPILL_FOLDER / f"{table}-{hour_ns}"
        try:
            merged = merge(inputs, self._thinner(hour_ns) if thinning else None, spill)
        except UnreadableFile as error:
            if error.path is None:
                raise
            self._files.set_aside(table, error.path, str(error))
            return Compacted()
        return Compacted(1, len(inputs), merged.rows, merged.sampled_out)

    def _thinner(self, hour_ns: int) -> Thin:
        """Thins spans of an hour by the requests that closed in it or in the one after."""
        notable = notable_traces(self._closed(Window(hour_ns, hour_ns + 2 * HOUR_NS)))
        return lambda spans: thin(spans, notable, self._keeping.sample_ratio)


def to_merge(settled: list[Segment], past: bool, thinning: bool) -> list[Segment]:
    """Which segments of an hour are worth rewriting into one now; consecutive.

    An hour that runs gathers its published segments by and by. A past one becomes a single
    segment, and again when a few late segments have come.
    """
    published = [s for s in settled if s.stage is Stage.PUBLISHED]
    merged = len(settled) - len(published)
    if thinning:
        return settled
    if not past:
        return published if len(published) >= GATHERED_SEGMENTS else []
    if merged == 1 and len(published) < LATE_SEGMENTS:
        return []
    return settled


def _added(one: Compacted, other: Compacted) -> Compacted:
    return Compacted(
        one.hours + other.hours,
        one.segments + other.segments,
        one.rows + other.rows,
        Counter(one.sampled_out) + Counter(other.sampled_out),
    )
