"""Numbers of segments within an hour, each handed out once."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailburn.engine.store.segments import Segment, next_number, segments_of_hour

_Hour = tuple[str, int]


class Numbering:
    """Knows which segments of one store are still on their way to the disk.

    A merged segment replaces a range of numbers, so none of these may come to the disk later.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._next: dict[_Hour, int] = {}
        self._publishing: defaultdict[_Hour, set[int]] = defaultdict(set)

    @contextmanager
    def publishing(self, table: str, hour_ns: int) -> Iterator[int]:
        """The number of a segment that has its name when the block ends."""
        hour = (table, hour_ns)
        with self._lock:
            n = self._next.get(hour)
            if n is None:
                n = next_number(self._root, table, hour_ns)
            self._next[hour] = n + 1
            self._publishing[hour].add(n)
        try:
            yield n
        finally:
            with self._lock:
                self._publishing[hour].discard(n)

    def settled(self, table: str, hour_ns: int, durable_position: int) -> list[Segment]:
        """The first segments of an hour, up to what is being published or isn't durable."""
        with self._lock:
            pending = min(self._publishing[table, hour_ns], default=None)
            found = segments_of_hour(self._root, table, hour_ns)
        settled: list[Segment] = []
        for segment in found:
            unsettled = pending is not None and segment.last >= pending
            if unsettled or segment.log.last > durable_position:
                break
            settled.append(segment)
        return settled
