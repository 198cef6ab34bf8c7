"""The segments of a store that can be trusted, while others write and compact them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from tailburn.engine.store import reading
from tailburn.engine.store.api import BadQuery, Damaged, TableUsage, UnreadableFile, Window
from tailburn.engine.store.retention import size_bytes
from tailburn.engine.store.rows import schema_of
from tailburn.engine.store.segments import hours, segments

_ATTEMPTS: Final = 8
_Result = TypeVar("_Result")


class Files:
    """Lists segments, leaves out those found damaged, and reads again when they move."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._damaged: dict[Path, Damaged] = {}
        self._row_counts: dict[Path, int] = {}

    def sound(self, table: str, window: Window) -> list[Path]:
        """The segments of a window without those found damaged so far."""
        listed = (s.path for s in segments(self.root, table, window))
        return [path for path in listed if self._is_sound(table, path)]

    def damaged(self) -> Sequence[Damaged]:
        """Those found damaged so far."""
        return list(self._damaged.values())

    def read(self, read: Callable[[], _Result], tables: Sequence[str], window: Window) -> _Result:
        """What `read` returns, tried again while compaction moves files or damage is found.

        Raises `BadQuery` where the files are all sound and it fails nevertheless.
        """
        for _ in range(_ATTEMPTS):
            before = [(table, path) for table in tables for path in self.sound(table, window)]
            try:
                return read()
            except UnreadableFile as error:
                suspects = [x for x in before if error.path in (None, x[1])]
                if not self._examine(suspects):
                    raise BadQuery(str(error)) from error
        raise BadQuery("the store's files changed faster than they could be read")

    def set_aside(self, table: str, path: Path, reason: str) -> None:
        """Rename a damaged segment so that it is in no read or merge, for its owner to see."""
        aside = path.with_name(path.name + ".damaged")
        path.rename(aside)
        self._damaged[path] = Damaged(table, str(aside), reason)

    def usage(self, table: str) -> TableUsage:
        """Size and extent of a table by file sizes and footers."""
        every = hours(self.root, table)
        found = [s for _, in_hour in every for s in in_hour if self._is_sound(table, s.path)]
        hours_ns = [hour_ns for hour_ns, in_hour in every if in_hour]
        return TableUsage(
            bytes=size_bytes(found),
            segments=len(found),
            rows=sum(self._row_counts[s.path] for s in found),
            first_hour_ns=min(hours_ns, default=None),
            last_hour_ns=max(hours_ns, default=None),
        )

    def _examine(self, suspects: list[tuple[str, Path]]) -> bool:
        """Whether any of these files is gone, or is found damaged and skipped from now on."""
        changed = False
        for table, path in suspects:
            reason = reading.damage(path, schema_of(table))
            if not path.exists():
                changed = True
            elif reason is not None:
                self._damaged[path] = Damaged(table, str(path), reason)
                changed = True
        return changed

    def _is_sound(self, table: str, path: Path) -> bool:
        """Whether a segment is there and its footer, read once, fits the table."""
        if path in self._damaged:
            return False
        if path in self._row_counts:
            return True
        try:
            self._row_counts[path] = reading.check_footer(path, schema_of(table))
        except UnreadableFile as error:
            if path.exists():
                self._damaged[path] = Damaged(table, str(path), str(error))
            return False
        return True
