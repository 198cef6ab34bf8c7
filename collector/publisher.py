"""Finished rows on their way into the store, each with the stretch of the log it came from."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.store import LogRange, Store
from tailburn.engine.store.rows import TIME_COLUMN

_HOUR_NS: Final = 3_600_000_000_000


@dataclass(frozen=True)
class _Part:
    """Rows of one table and one hour: what the store takes whole or not at all."""

    table: str
    rows: pa.Table
    log: LogRange


class Publisher:
    """Publishes rows in the order they were taken. What the disk refuses is kept and tried again.

    Ranges follow each other without a gap, so a restart at a position that was passed between
    two of them finds each row on one side of it.
    """

    def __init__(self, store: Store, position: int) -> None:
        self._store = store
        self._position = position
        self._parts: deque[_Part] = deque()

    @property
    def is_behind(self) -> bool:
        """Whether rows wait to be published."""
        return bool(self._parts)

    def take(self, tables: Mapping[str, pa.Table], position: int) -> None:
        """Takes the rows finished since the last call by the records up to `position`."""
        for table, rows in tables.items():
            log = LogRange(self._position + 1, position)
            for of_hour in _hours(rows, TIME_COLUMN[table]):
                self._parts.append(_Part(table, of_hour, log))
        self._position = position

    def publish(self) -> None:
        """Raises `OSError` where the disk can't take a part; what follows it waits as well."""
        while self._parts:
            part = self._parts[0]
            self._store.publish(part.table, part.rows, part.log)
            self._parts.popleft()


def _hours(rows: pa.Table, column: str) -> Iterator[pa.Table]:
    if not rows.num_rows:
        return
    hours = pc.divide(rows[column], _HOUR_NS)
    bounds = pc.min_max(hours).as_py()
    if bounds["min"] == bounds["max"]:
        yield rows
        return
    for hour in pc.unique(hours):
        yield rows.filter(pc.equal(hours, hour))
