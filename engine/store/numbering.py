"""Numbers of segments within an hour, and who may merge the hour."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailburn.engine.store.segments import Segment, next_number, segments_of_hour

_Hour = tuple[str, int]


class Numbering:
    """Hands out the numbers of one store's segments, each once.

    A merged segment replaces all smaller numbers of its hour, so none of those may still be
    on its way to the disk when the merged one gets its number.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._next: dict[_Hour, int] = {}
        self._publishing: Counter[_Hour] = Counter()

    @contextmanager
    def publishing(self, table: str, hour_ns: int) -> Iterator[int]:
        """The number of a segment that has its name when the block ends."""
        hour = (table, hour_ns)
        with self._lock:
            n = self._take(hour)
            self._publishing[hour] += 1
        try:
            yield n
        finally:
            with self._lock:
                self._publishing[hour] -= 1
                if not self._publishing[hour]:
                    del self._publishing[hour]

    def merging(self, table: str, hour_ns: int) -> tuple[list[Segment], int] | None:
        """All segments of an hour and the number of what replaces them; None while it changes."""
        with self._lock:
            if (table, hour_ns) in self._publishing:
                return None
            inputs = segments_of_hour(self._root, table, hour_ns)
            return inputs, self._take((table, hour_ns))

    def _take(self, hour: _Hour) -> int:
        n = self._next.get(hour)
        if n is None:
            n = next_number(self._root, *hour)
        self._next[hour] = n + 1
        return n
