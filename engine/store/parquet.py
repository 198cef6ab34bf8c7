"""The store on Parquet segments, read by DuckDB: no server, and any tool can open the files."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine import rollup
from tailburn.engine.schema import REQUESTS, ROLLUP_DIMENSIONS, ROLLUPS, SPANS, TABLES
from tailburn.engine.store import reading, sql
from tailburn.engine.store.api import (
    ALWAYS,
    U64,
    BadQuery,
    Damaged,
    LogRange,
    NotDurable,
    Trace,
    UnknownColumn,
    UnreadableFile,
    Window,
)
from tailburn.engine.store.rows import TIME_COLUMN, check_columns, fit, schema_of
from tailburn.engine.store.segments import (
    HOUR_NS,
    Stage,
    hour_folder,
    next_number,
    replaced,
    segment_name,
    segments,
    temporaries,
)
from tailburn.engine.store.writing import remove, write_segment

_ATTEMPTS = 8
_Result = TypeVar("_Result")


class ParquetStore:
    """`Store` in a folder. Safe to use from several threads; one process may write."""

    def __init__(self, root: Path, memory_bytes: int = 1 << 30, threads: int = 2) -> None:
        self.root = root
        self._engine = sql.Engine(root, memory_bytes, threads)
        self._numbering = threading.Lock()
        self._next_number: dict[tuple[str, int], int] = {}
        self._damaged: dict[Path, Damaged] = {}

    def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
        schema = schema_of(table)
        unknown = set(rows.column_names) - set(schema.names)
        if unknown:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        for hour_ns, part in _by_hour(fit(rows, schema), TIME_COLUMN[table]):
            name = segment_name(log, self._number(table, hour_ns), Stage.PUBLISHED)
            write_segment(hour_folder(self.root, table, hour_ns) / name, table, part)

    def discard_after(self, position: int) -> int:
        doomed: list[Path] = []
        leftovers: list[Path] = []
        for table in TABLES:
            leftovers += [*temporaries(self.root, table), *replaced(self.root, table)]
            for segment in segments(self.root, table, ALWAYS):
                if segment.log.last <= position:
                    continue
                if segment.stage is not Stage.PUBLISHED:
                    raise NotDurable(
                        f"{segment.path}: merged as durable up to {segment.log.last}, "
                        f"but the restart begins after {position}"
                    )
                doomed.append(segment.path)
        remove(leftovers)
        return remove(doomed)

    def requests(
        self,
        window: Window = ALWAYS,
        where: Mapping[str, str] | None = None,
        latest: bool = True,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        chosen = list(columns) if columns is not None else REQUESTS.names
        check_columns("requests", [*chosen, *(where or {})])
        names = ", ".join(sql.identifier(c) for c in chosen)
        conditions, parameters = _conditions("requests", window, where or {})

        since = Window(window.since_ns, None)

        def read() -> pa.Table:
            files = self._files("requests", window)
            if latest:
                rows = f"({sql.latest_requests(files, self._files('requests', since))})"
            else:
                rows = sql.scan("requests", files)
            return self._engine.run(f"SELECT {names} FROM {rows} WHERE {conditions}", parameters)

        found = self._retry(read, ["requests"], since)
        return fit(found, pa.schema([REQUESTS.field(c) for c in chosen]))

    def trace(self, trace_id: str, hint: Window | None = None) -> Trace:
        window = hint or ALWAYS
        try:
            raw = bytes.fromhex(trace_id)
        except ValueError:
            raw = b""
        if len(raw) != 16:
            return Trace(SPANS.empty_table(), REQUESTS.empty_table())

        def read() -> pa.Table:
            files = self._files("spans", window)
            found = self._engine.run(
                f"SELECT DISTINCT filename FROM {sql.scan('spans', files, filename=True)} "
                "WHERE trace_id = ?",
                [raw],
            )
            holding = [Path(p) for p in found.column(0).to_pylist()]
            return _read_traces("spans", holding, np.frombuffer(raw[:8], "<u8"), window)

        spans = self._retry(read, ["spans"], window)
        exact = pc.equal(spans.column("trace_id"), pa.scalar(raw, pa.binary(16)))
        requests = self.requests(window, {"trace_id": raw.hex()})
        return Trace(spans.filter(exact).sort_by("start_ns"), requests)

    def closed_traces(self, window: Window = ALWAYS) -> U64:
        def read() -> U64:
            words = [_closed(path, window) for path in self._files("requests", window)]
            return np.unique(np.concatenate(words)) if words else np.zeros(0, np.uint64)

        return self._retry(read, ["requests"], window)

    def spans_of(self, trace_words: U64, window: Window = ALWAYS) -> pa.Table:
        return self._rows_of("spans", trace_words, window)

    def requests_of(self, trace_words: U64, window: Window = ALWAYS) -> pa.Table:
        return self._rows_of("requests", trace_words, window)

    def rollups(
        self,
        window: Window = ALWAYS,
        where: Mapping[str, str] | None = None,
        by: Sequence[str] = (),
        clocks: Sequence[str] | None = None,
    ) -> pa.Table:
        groupable = ("minute_ns", *ROLLUP_DIMENSIONS)
        for name in (*by, *(where or {})):
            if name not in groupable:
                raise UnknownColumn(f"rollups aren't kept by {name!r}")
        conditions, parameters = _conditions("rollups", window, where or {})
        if clocks is not None:
            conditions += " AND list_contains(?, clock)"
            parameters.append(list(clocks))
        names = [*by, "clock", "count", "sum_s", "min_s", "max_s", "buckets", "counts"]
        listed = ", ".join(sql.identifier(n) for n in names)

        def read() -> pa.Table:
            rows = sql.scan("rollups", self._files("rollups", window))
            return self._engine.run(f"SELECT {listed} FROM {rows} WHERE {conditions}", parameters)

        found = self._retry(read, ["rollups"], window)
        return rollup.merge(fit(found, pa.schema([ROLLUPS.field(n) for n in names])), by)

    def query(
        self, sql_text: str, parameters: Sequence[object] = (), window: Window = ALWAYS
    ) -> pa.Table:
        self._engine.check_reads_only(sql_text)

        def read() -> pa.Table:
            files = {table: self._files(table, window) for table in TABLES}
            later = self._files("requests", Window(window.since_ns, None))
            return self._engine.run(sql_text, parameters, sql.views(files, later))

        return self._retry(read, list(TABLES), window)

    def damaged(self) -> Sequence[Damaged]:
        return list(self._damaged.values())

    def _files(self, table: str, window: Window) -> list[Path]:
        listed = (s.path for s in segments(self.root, table, window))
        return [path for path in listed if path not in self._damaged]

    def _rows_of(self, table: str, trace_words: U64, window: Window) -> pa.Table:
        words = np.unique(trace_words)

        def read() -> pa.Table:
            return _read_traces(table, self._files(table, window), words, window)

        return self._retry(read, [table], window)

    def _retry(self, read: Callable[[], _Result], tables: Sequence[str], window: Window) -> _Result:
        """What `read` returns, tried again while compaction moves files or damage is found."""
        for _ in range(_ATTEMPTS):
            before = {table: self._files(table, window) for table in tables}
            try:
                return read()
            except UnreadableFile as error:
                suspects = [
                    (table, path)
                    for table, paths in before.items()
                    for path in paths
                    if error.path in (None, path)
                ]
                if not self._examine(suspects):
                    raise BadQuery(str(error)) from error
        raise BadQuery("the store's files changed faster than they could be read")

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

    def _number(self, table: str, hour_ns: int) -> int:
        """The next number of a segment in its hour, never one used before."""
        with self._numbering:
            key = (table, hour_ns)
            if key not in self._next_number:
                self._next_number[key] = next_number(self.root, table, hour_ns)
            self._next_number[key] += 1
            return self._next_number[key] - 1


def _by_hour(rows: pa.Table, time_column: str) -> Iterable[tuple[int, pa.Table]]:
    if len(rows) == 0:
        return
    hours = rows.column(time_column).to_numpy() // HOUR_NS * HOUR_NS
    for hour_ns in np.unique(hours):
        whole = hours[0] == hour_ns and hours[-1] == hour_ns and bool((hours == hour_ns).all())
        yield int(hour_ns), rows if whole else rows.filter(pa.array(hours == hour_ns))


def _conditions(table: str, window: Window, where: Mapping[str, str]) -> tuple[str, list[object]]:
    """What stands after WHERE, and its parameters."""
    equal, values = sql.equalities(where)
    time = TIME_COLUMN[table]
    bounds = [(">=", window.since_ns), ("<", window.until_ns)]
    limits = [(f"{time} {compare} ?", at) for compare, at in bounds if at is not None]
    conditions = ["true", *(c for c, _ in limits), *equal]
    return " AND ".join(conditions), [*(at for _, at in limits), *values]


def _within(rows: pa.Table, table: str, window: Window) -> pa.Table:
    time = rows.column(TIME_COLUMN[table])
    if window.since_ns is not None:
        rows = rows.filter(pc.greater_equal(time, window.since_ns))
        time = rows.column(TIME_COLUMN[table])
    if window.until_ns is not None:
        rows = rows.filter(pc.less(time, window.until_ns))
    return rows


def _read_traces(table: str, paths: list[Path], words: U64, window: Window) -> pa.Table:
    found = [reading.read_traces(path, words) for path in paths]
    kept = [fit(_within(rows, table, window), TABLES[table]) for rows in found if rows is not None]
    return pa.concat_tables(kept) if kept else TABLES[table].empty_table()


def _closed(path: Path, window: Window) -> U64:
    rows = _within(reading.read_columns(path, ["trace_id", "received_ns"]), "requests", window)
    return np.unique(reading.trace_words(rows.column("trace_id")))
