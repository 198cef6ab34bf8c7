"""Segments read whole or by trace, with every page's checksum verified."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailburn.engine.store.api import TraceIds, UnreadableFile
from tailburn.engine.store.rows import fit, ids_of_binary, ids_of_hex, member
from tailburn.engine.store.seal import check_seal


def read_groups(path: Path) -> Iterator[pa.Table]:
    """A segment in pieces of bounded size; raises `UnreadableFile`."""
    with _Opened(path) as segment:
        for group in range(max(segment.groups, 1)):
            yield segment.read(group)


def damage(path: Path, schema: pa.Schema) -> str | None:
    """Why a segment can't be trusted; None where every page reads back as it was written."""
    try:
        check_footer(path, schema)
        for rows in read_groups(path):
            fit(rows, schema)
    except UnreadableFile as error:
        return str(error)
    return None


def check_footer(path: Path, schema: pa.Schema) -> int:
    """Rows of a segment by its footer; raises `UnreadableFile` where that isn't the schema's.

    Columns may be missing: older segments lack newer ones.
    """
    with _Opened(path) as segment:
        unknown = set(segment.columns) - set(schema.names)
        if unknown:
            raise UnreadableFile(f"unknown column {min(unknown)!r}", path)
        return segment.rows


def read_columns(path: Path, columns: Sequence[str]) -> pa.Table:
    """Some columns of a segment; raises `UnreadableFile`."""
    with _Opened(path) as segment:
        return segment.read_all(columns)


def read_traces(path: Path, traces: TraceIds) -> pa.Table | None:
    """Rows of some traces (sorted); None when there are none. Raises `UnreadableFile`."""
    found = []
    with _Opened(path) as segment:
        for group in range(segment.groups):
            if not segment.may_hold(group, traces):
                continue
            mask = member(trace_ids(segment.read(group, ["trace_id"]).column(0)), traces)
            if mask.any():
                found.append(segment.read(group).filter(pa.array(mask)))
    return pa.concat_tables(found) if found else None


def read_clocks(path: Path, columns: Sequence[str], clocks: Sequence[str] | None) -> pa.Table:
    """Columns, `clock` among them, of the rollups of some clocks (None: all).

    Raises `UnreadableFile`.
    """
    with _Opened(path) as segment:
        if clocks is None:
            return segment.read_all(columns)
        held = [g for g in range(segment.groups) if segment.may_hold_text("clock", g, clocks)]
        rows = segment.read_all(columns, held)
    return rows.filter(pc.is_in(rows.column("clock").cast(pa.string()), pa.array(clocks)))


def trace_ids(ids: pa.ChunkedArray) -> TraceIds:
    """Trace ids, stored as bytes or as hex digits."""
    if pa.types.is_fixed_size_binary(ids.type):
        return ids_of_binary(ids)
    return ids_of_hex(ids)


class _Opened:
    """A Parquet file whose every error is an `UnreadableFile`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "_Opened":
        check_seal(self._path)
        try:
            self._file = pq.ParquetFile(self._path, page_checksum_verification=True)
            self.groups: int = self._file.metadata.num_row_groups
            self.rows: int = self._file.metadata.num_rows
            self.columns: list[str] = self._file.schema_arrow.names
        except _READ_ERRORS as error:
            raise UnreadableFile(str(error), self._path) from error
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        return self.read_all(columns, [group] if self.groups else [])

    def read_all(
        self, columns: Sequence[str] | None, groups: Sequence[int] | None = None
    ) -> pa.Table:
        """Some columns of some row groups; None: of all."""
        chosen = range(self.groups) if groups is None else groups
        try:
            rows = self._file.read_row_groups(list(chosen), columns=columns, use_threads=False)
            # A page's own header, which says how many values its dictionary has, is in no
            # checksum: a code without a value shows here and not when somebody asks for it.
            rows.validate(full=True)
        except _READ_ERRORS as error:
            raise UnreadableFile(str(error), self._path) from error
        return rows

    def may_hold(self, group: int, traces: TraceIds) -> bool:
        """False where the group's statistics rule every trace (sorted) out."""
        statistics = self._statistics(group, "trace_id")
        if statistics is None or not statistics.has_min_max:
            return True
        low, high = np.array([_bytes(statistics.min), _bytes(statistics.max)], "S16")
        at = int(np.searchsorted(traces, low))
        return at < len(traces) and bool(traces[at] <= high)

    def may_hold_text(self, column: str, group: int, texts: Sequence[str]) -> bool:
        """False where the group's statistics rule every text out."""
        statistics = self._statistics(group, column)
        if statistics is None or not statistics.has_min_max:
            return True
        return any(statistics.min <= text <= statistics.max for text in texts)

    def _statistics(self, group: int, column: str) -> Any:
        leaf = self._file.metadata.schema.names.index(column)
        return self._file.metadata.row_group(group).column(leaf).statistics


def _bytes(trace_id: bytes | str) -> bytes:
    return bytes.fromhex(trace_id) if isinstance(trace_id, str) else trace_id


_READ_ERRORS = (OSError, pa.ArrowException, ValueError, KeyError, IndexError)
