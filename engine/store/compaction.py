"""Segments of one hour made into one, sorted, in bounded memory.

Rows go through spill files by slice (of trace ids, or of time), so that only one slice at a
time is sorted in memory. The new segment replaces its inputs at the instant of its rename.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine import rollup
from tailburn.engine.baseline import cells
from tailburn.engine.counted import add_up
from tailburn.engine.schema import COUNTED, ROLLUP_DIMENSIONS, TABLES, USUAL_DIMENSIONS
from tailburn.engine.store import reading
from tailburn.engine.store.api import UnreadableFile
from tailburn.engine.store.rows import TIME_COLUMN, fit
from tailburn.engine.store.segments import HOUR_NS, Segment, Stage, replacement_name
from tailburn.engine.store.writing import (
    compact_dictionaries,
    group_rows,
    segment_writer,
)

SLICE_ROWS: Final = 500_000
Thin = Callable[[pa.Table], tuple[pa.Table, Counter[str]]]


@dataclass(frozen=True)
class Merged:
    """What one merge wrote and left out."""

    rows: int
    sampled_out: Counter[str]


def merge(
    inputs: list[Segment], thin: Thin | None, spill: Path, slice_rows: int = SLICE_ROWS
) -> Merged:
    """Write the segment that replaces `inputs`, consecutive in one hour, and unlink these.

    `thin` is applied to the rows of inputs that weren't thinned before. `spill` is a folder
    of this call's own. Raises `UnreadableFile` before anything has changed.
    """
    table, hour_ns = inputs[0].table, inputs[0].hour_ns
    rows = sum(reading.check_footer(s.path, TABLES[table]) for s in inputs)
    slices = max(-(-rows // slice_rows), 1)
    dropped: Counter[str] = Counter()
    thinned = thin is not None or any(s.stage is Stage.THINNED for s in inputs)
    stage = Stage.THINNED if thinned else Stage.MERGED
    path = inputs[0].path.with_name(replacement_name(inputs, stage))
    try:
        _spill(table, hour_ns, _read(inputs, thin, dropped), slices, spill)
        written = 0
        with segment_writer(path, table, merged=True) as writer:
            for index in range(slices):
                piece = _sorted(table, _unspill(table, spill, index))
                writer.write_table(compact_dictionaries(piece), row_group_size=group_rows(rows))
                written += len(piece)
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    for segment in inputs:
        segment.path.unlink()
    return Merged(written, dropped)


def _read(inputs: list[Segment], thin: Thin | None, dropped: Counter[str]) -> Iterator[pa.Table]:
    for segment in inputs:
        for rows in reading.read_groups(segment.path):
            try:
                piece = fit(rows, TABLES[segment.table])
            except (pa.ArrowException, ValueError) as error:
                raise UnreadableFile(str(error), segment.path) from error
            if thin is not None and segment.stage is not Stage.THINNED:
                piece, out = thin(piece)
                dropped.update(out)
            yield piece


def _spill(table: str, hour_ns: int, pieces: Iterator[pa.Table], slices: int, spill: Path) -> None:
    spill.mkdir(parents=True)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as open_files:
        writers: list[Any] = [
            open_files.enter_context(
                pa.ipc.new_stream(spill / str(i), TABLES[table], options=options)
            )
            for i in range(slices)
        ]
        for piece in pieces:
            if slices == 1:
                writers[0].write_table(piece)
                continue
            slice_of = _slice_of(table, hour_ns, piece, slices)
            for index in np.unique(slice_of):
                writers[index].write_table(piece.filter(pa.array(slice_of == index)))


def _slice_of(table: str, hour_ns: int, rows: pa.Table, slices: int) -> NDArray[np.int64]:
    """Which slice each row belongs to; slices are in order of the sort."""
    if "trace_id" in rows.column_names:
        start = _halves(rows)[:, 0] >> np.uint64(48)
        return (start.astype(np.int64) * slices) >> 16
    since = rows.column(TIME_COLUMN[table]).to_numpy() - hour_ns
    return since * slices // HOUR_NS


def _unspill(table: str, spill: Path, index: int) -> pa.Table:
    path = spill / str(index)
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        rows = stream.read_all()
    path.unlink()
    return rows.cast(TABLES[table])


def _sorted(table: str, rows: pa.Table) -> pa.Table:
    """Rows in the order that their readers look for."""
    whole = rows.unify_dictionaries().combine_chunks()
    if table == "rollups":
        merged = rollup.merge(whole, ["minute_ns", *ROLLUP_DIMENSIONS])
        return merged.take(_order(merged, ["clock", "minute_ns"]))
    if table in COUNTED:
        added = add_up(table, whole)
        return added.take(_order(added, ["slo", "minute_ns"]))
    if table == "usual":
        return cells.merge(whole, USUAL_DIMENSIONS)
    if table == "signals":
        return whole.take(_order(whole, ["name", "labels", "time_ns"]))
    halves = _halves(whole)
    within = whole.column("start_ns" if table == "spans" else "version")
    order = np.lexsort((pc.fill_null(within, 0).to_numpy(), halves[:, 1], halves[:, 0]))
    return whole.take(pa.array(order))


def _halves(rows: pa.Table) -> NDArray[np.uint64]:
    """Of the trace ids, as numbers that compare as the ids do."""
    traces = reading.trace_ids(rows.column("trace_id"))
    return np.ascontiguousarray(traces).view(">u8").astype(np.uint64).reshape(-1, 2)


def _order(rows: pa.Table, keys: list[str]) -> pa.Array:
    plain = [
        rows.column(k).cast(pa.string())
        if pa.types.is_dictionary(rows.column(k).type)
        else rows.column(k)
        for k in keys
    ]
    return pc.sort_indices(pa.table(plain, names=keys), [(k, "ascending") for k in keys])
