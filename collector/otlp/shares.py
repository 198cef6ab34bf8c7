"""Who may take how much of a table that nothing ever leaves.

Everybody may hold as much as is still free after them. So one sender fills half of a table,
whatever it sends, the next one half of the rest, and there is always room for another.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tailburn.collector.otlp.kernel.table import Table

_RESERVE: Final = 64  # one in so many entries is the service's own, whoever sends what


class Shares:
    """Bounds what each holder adds to a table. Callers serialise their calls."""

    def __init__(self, table: Table) -> None:
        self._record = table.record
        self._entries, self._bytes = self._limits()
        self._held: dict[str, tuple[int, int]] = {}  # entries, bytes
        self._holder: str | None = None
        self._before = self._used()

    def charge(self, holder: str) -> None:
        """What is added from now on is `holder`'s."""
        if holder == self._holder:
            return
        self._settle()
        self._holder = holder
        entries, size = self._used()
        held_entries, held_bytes = self._held.get(holder, (0, 0))
        room = self._entries - self._entries // _RESERVE - entries - held_entries
        self._bound(
            entries + max(room, 0) // 2,
            size + max(self._bytes - size - held_bytes, 0) // 2,
        )

    @contextmanager
    def own(self) -> Iterator[None]:
        """What is added inside is nobody's and bounded by the table alone."""
        self._settle()
        self._holder = None
        self._bound(self._entries, self._bytes)
        yield
        self._before = self._used()

    def dump(self) -> dict[str, tuple[int, int]]:
        """Entries and bytes by holder, for `load`."""
        self._settle()
        return dict(self._held)

    def load(self, dumped: Mapping[str, tuple[int, int]]) -> None:
        """Take over what `dump` gave."""
        self._held = {holder: (entries, size) for holder, (entries, size) in dumped.items()}

    def _settle(self) -> None:
        used = self._used()
        if self._holder is not None:
            entries, size = self._held.get(self._holder, (0, 0))
            more_entries, more_bytes = used[0] - self._before[0], used[1] - self._before[1]
            if more_entries:
                self._held[self._holder] = (entries + more_entries, size + more_bytes)
        self._before = used

    def _used(self) -> tuple[int, int]:
        return int(self._record["count"][0]), int(self._record["arena_used"][0])

    def _limits(self) -> tuple[int, int]:
        return int(self._record["capacity"][0]), int(self._record["arena_bytes"][0])

    def _bound(self, entries: int, size: int) -> None:
        self._record["capacity"] = entries
        self._record["arena_bytes"] = size
