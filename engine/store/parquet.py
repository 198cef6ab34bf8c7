"""The store on Parquet segments, read by DuckDB: no server, and any tool can open the files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine import rollup
from tailburn.engine.baseline import cells
from tailburn.engine.counted import add_up
from tailburn.engine.grouping import text
from tailburn.engine.names import UNKNOWN
from tailburn.engine.problems import nearest
from tailburn.engine.schema import (
    COUNTED,
    REQUESTS,
    ROLLUP_DIMENSIONS,
    ROLLUPS,
    SPANS,
    TABLES,
    USUAL_DIMENSIONS,
)
from tailburn.engine.store import reading
from tailburn.engine.store.api import (
    ALWAYS,
    Compacted,
    Damaged,
    LogRange,
    Retired,
    TableUsage,
    Trace,
    TraceIds,
    UnknownColumn,
    Window,
)
from tailburn.engine.store.files import Files
from tailburn.engine.store.keeping import THINNING_COLUMNS, Keeping
from tailburn.engine.store.numbering import Numbering
from tailburn.engine.store.rows import TIME_COLUMN, check_columns, fit, schema_of
from tailburn.engine.store.segments import HOUR_NS, hour_folder, published_name
from tailburn.engine.store.sql import LATER, VIEWS, Engine, equalities, identifier
from tailburn.engine.store.upkeep import Upkeep
from tailburn.engine.store.writing import write_segment


class ParquetStore:
    """`Store` in a folder. Safe to use from several threads; one process may write."""

    def __init__(
        self,
        root: Path,
        keeping: Keeping | None = None,
        memory_bytes: int = 1 << 30,
        threads: int = 2,
    ) -> None:
        self.root = root
        self._engine = Engine(root, memory_bytes, threads)
        self._files = Files(root)
        self._numbering = Numbering(root)
        self._upkeep = Upkeep(self._files, self._numbering, keeping or Keeping(), self._closed)

    def publish(self, table: str, rows: pa.Table, log: LogRange) -> None:
        schema = schema_of(table)
        unknown = set(rows.column_names) - set(schema.names)
        if unknown:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        for hour_ns, part in _by_hour(fit(rows, schema), TIME_COLUMN[table]):
            folder = hour_folder(self.root, table, hour_ns)
            with self._numbering.publishing(table, hour_ns) as n:
                write_segment(folder / published_name(log, n), table, part)

    def discard_after(self, position: int) -> int:
        return self._upkeep.discard_after(position)

    def requests(
        self,
        window: Window = ALWAYS,
        where: Mapping[str, str] | None = None,
        latest: bool = True,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        chosen = list(columns) if columns is not None else REQUESTS.names
        check_columns("requests", [*chosen, *(where or {})])
        names = ", ".join(identifier(c) for c in chosen)
        conditions, parameters = _conditions("requests", window, where or {})

        since = Window(window.since_ns, None)
        view = "requests" if latest else "request_versions"
        sql = f"SELECT {names} FROM {view} WHERE {conditions}"

        def read() -> pa.Table:
            files = {"requests": self._files.sound("requests", window)}
            if latest:
                files[LATER] = self._files.sound("requests", since)
            return self._engine.run(sql, parameters, [view], files)

        found = self._files.read(read, ["requests"], since)
        return fit(found, pa.schema([REQUESTS.field(c) for c in chosen]))

    def trace(self, trace_id: str, hint: Window | None = None) -> Trace:
        window = hint or ALWAYS
        try:
            raw = bytes.fromhex(trace_id)
        except ValueError:
            raw = b""
        if len(raw) != 16:
            return Trace(SPANS.empty_table(), REQUESTS.empty_table())

        spans = self.spans_of(np.array([raw], "S16"), window)
        return Trace(spans.sort_by("start_ns"), self._latest_of(raw, window))

    def closed_traces(self, window: Window = ALWAYS) -> TraceIds:
        def read() -> TraceIds:
            ids = [_closed(path, window) for path in self._files.sound("requests", window)]
            return np.unique(np.concatenate(ids)) if ids else np.zeros(0, "S16")

        return self._files.read(read, ["requests"], window)

    def spans_of(self, traces: TraceIds, window: Window = ALWAYS) -> pa.Table:
        return self._rows_of("spans", traces, window)

    def requests_of(self, traces: TraceIds, window: Window = ALWAYS) -> pa.Table:
        return self._rows_of("requests", traces, window)

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
        names = [*by, "clock", "count", "sum_s", "min_s", "max_s", "buckets", "counts"]
        wanted = dict.fromkeys([*names, "minute_ns", *(where or {})])
        empty = ROLLUPS.empty_table().select(list(wanted))

        def read() -> pa.Table:
            parts = [
                reading.read_clocks(path, list(wanted), clocks)
                for path in self._files.sound("rollups", window)
            ]
            rows = pa.concat_tables([empty, *(fit(part, empty.schema) for part in parts)])
            return _within(rows, "rollups", window)

        found = self._files.read(read, ["rollups"], window)
        for name, value in (where or {}).items():
            found = found.filter(pc.equal(text(found.column(name), UNKNOWN), value))
        return rollup.merge(found.select(names), by)

    def verdicts(self, window: Window = ALWAYS, where: Mapping[str, str] | None = None) -> pa.Table:
        return self._counted("verdicts", window, where or {})

    def excess(self, window: Window = ALWAYS, where: Mapping[str, str] | None = None) -> pa.Table:
        return self._counted("excess", window, where or {})

    def usual(self, window: Window = ALWAYS) -> pa.Table:
        return cells.merge(self._whole("usual", window), USUAL_DIMENSIONS)

    def query(
        self, sql: str, parameters: Sequence[object] = (), window: Window = ALWAYS
    ) -> pa.Table:
        self._engine.check_reads_only(sql)

        def read() -> pa.Table:
            files = {table: self._files.sound(table, window) for table in TABLES}
            files[LATER] = self._files.sound("requests", Window(window.since_ns, None))
            return self._engine.run(sql, parameters, list(VIEWS), files)

        return self._files.read(read, list(TABLES), window)

    def compact(self, now_ns: int, durable_position: int) -> Compacted:
        return self._upkeep.compact(now_ns, durable_position)

    def retain(self, now_ns: int) -> Mapping[str, Retired]:
        return self._upkeep.retain(now_ns)

    def usage(self) -> Mapping[str, TableUsage]:
        return {table: self._files.usage(table) for table in TABLES}

    def damaged(self) -> Sequence[Damaged]:
        return self._files.damaged()

    def _latest_of(self, trace_id: bytes, window: Window) -> pa.Table:
        """Requests of a trace in a window, unless a newer version came after it."""
        versions = self.requests_of(np.array([trace_id], "S16"), Window(window.since_ns, None))
        ids, numbers = (versions.column(c).to_pylist() for c in ("request_id", "version"))
        newest = dict(sorted(zip(ids, numbers, strict=True)))
        is_newest = [newest[i] == n for i, n in zip(ids, numbers, strict=True)]
        latest = versions.filter(pa.array(is_newest, pa.bool_()))
        return _within(latest.filter(pc.invert(latest.column("tombstone"))), "requests", window)

    def _counted(self, table: str, window: Window, where: Mapping[str, str]) -> pa.Table:
        keys = COUNTED[table]
        for name in where:
            if name not in keys:
                raise UnknownColumn(f"{table} isn't kept by {name!r}{nearest(name, keys)}")
        found = self._whole(table, window)
        for name, value in where.items():
            found = found.filter(pc.equal(found.column(name).cast(pa.string()), value))
        return add_up(table, found)

    def _whole(self, table: str, window: Window) -> pa.Table:
        """All rows of the window."""
        schema = TABLES[table]

        def read() -> pa.Table:
            parts = [
                fit(_within(rows, table, window), schema)
                for path in self._files.sound(table, window)
                for rows in reading.read_groups(path)
            ]
            return pa.concat_tables([schema.empty_table(), *parts])

        return self._files.read(read, [table], window)

    def _closed(self, window: Window) -> pa.Table:
        return self.requests(window, columns=THINNING_COLUMNS)

    def _rows_of(self, table: str, traces: TraceIds, window: Window) -> pa.Table:
        wanted = np.unique(traces)

        def read() -> pa.Table:
            return _read_traces(table, self._files.sound(table, window), wanted, window)

        return self._files.read(read, [table], window)


def _by_hour(rows: pa.Table, time_column: str) -> Iterable[tuple[int, pa.Table]]:
    if len(rows) == 0:
        return
    hours = rows.column(time_column).to_numpy() // HOUR_NS * HOUR_NS
    for hour_ns in np.unique(hours):
        whole = hours[0] == hour_ns and hours[-1] == hour_ns and bool((hours == hour_ns).all())
        yield int(hour_ns), rows if whole else rows.filter(pa.array(hours == hour_ns))


def _conditions(table: str, window: Window, where: Mapping[str, str]) -> tuple[str, list[object]]:
    """What stands after WHERE, and its parameters."""
    equal, values = equalities(where)
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


def _read_traces(table: str, paths: list[Path], traces: TraceIds, window: Window) -> pa.Table:
    found = [reading.read_traces(path, traces) for path in paths]
    kept = [fit(_within(rows, table, window), TABLES[table]) for rows in found if rows is not None]
    return pa.concat_tables(kept) if kept else TABLES[table].empty_table()


def _closed(path: Path, window: Window) -> TraceIds:
    rows = _within(reading.read_columns(path, ["trace_id", "received_ns"]), "requests", window)
    return np.unique(reading.trace_ids(rows.column("trace_id")))
