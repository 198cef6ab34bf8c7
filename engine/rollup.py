"""Requests folded into histograms: one row per receive minute, series and clock, and one
more per minute and series that counts the requests.

A request of sampling weight w counts round(w) times, at least once, so counts stay whole.
A duration that is null, negative or not finite is unmeasured and counts nowhere. TPOT counts
only from `TPOT_MIN_OUTPUT_TOKENS` output tokens on: with few gaps it is noise.

A newer version of a request takes the older one back by a row of negative counts in the older
one's minute. Minimum and maximum can't be taken back: they bound every version ever counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine import histogram
from tailburn.engine.grouping import F64, I64, distinct, numbers, single_chunk, text, weights
from tailburn.engine.names import (
    CLOCK_COLUMNS,
    DECODE_HOP_COLUMNS,
    TTFT_HOP_COLUMNS,
    UNKNOWN,
)
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS

_Number = TypeVar("_Number", np.int64, np.float64)

MINUTE_NS: Final = 60_000_000_000
TPOT_MIN_OUTPUT_TOKENS: Final = 16
FOLDED_COLUMNS: Final = (*CLOCK_COLUMNS, *TTFT_HOP_COLUMNS, *DECODE_HOP_COLUMNS)
REQUESTS: Final = "requests"
"""The `clock` of the row that counts the requests of a series, measured or not: no buckets."""
_DENSE_CELLS: Final = 1 << 22


@dataclass(frozen=True)
class _Folded:
    """Rows of one clock: which groups have any, and their histograms in sparse form."""

    clock: str
    group: I64
    count: I64
    sum_s: F64
    min_s: F64
    max_s: F64
    length: I64  # buckets in use, per row
    buckets: NDArray[np.int16]
    counts: I64


def fold(requests: pa.Table, sign: Literal[1, -1] = 1) -> pa.Table:
    """ROLLUPS of `requests`, tombstones left out; `sign=-1` takes these versions back."""
    kept = requests.filter(pc.invert(pc.fill_null(requests.column("tombstone"), False)))
    if len(kept) == 0:
        return ROLLUPS.empty_table()
    minute = kept.column("received_ns").to_numpy() // MINUTE_NS * MINUTE_NS
    dimensions = [text(kept.column(d), UNKNOWN) for d in ROLLUP_DIMENSIONS]
    keys, group = distinct([pa.chunked_array([minute]), *dimensions])
    groups = len(keys[0])
    weight = weights(kept)
    long_enough = numbers(kept.column("output_tokens"), 0) >= TPOT_MIN_OUTPUT_TOKENS
    folded = [_fold_requests(group, weight, groups)]
    for clock in FOLDED_COLUMNS:
        values = numbers(kept.column(clock), np.nan)
        measured = (values >= 0) & (values < np.inf)
        if clock.startswith("tpot_"):
            measured &= long_enough
        if measured.any():
            chosen = (values[measured], group[measured], weight[measured])
            folded.append(_fold_clock(clock, *chosen, groups))
    if sign == -1:
        folded = [_taken_back(rows) for rows in folded]
    return _table([("minute_ns", keys[0]), *zip(ROLLUP_DIMENSIONS, keys[1:], strict=True)], folded)


def merge(rollups: pa.Table, by: Sequence[str]) -> pa.Table:
    """Rollups added up per group of `by` and clock; groups left without a request vanish.

    Columns: `by`, then `clock` to `counts` as in ROLLUPS. Any order of the same rows, merged in
    any number of steps, gives the same counts.
    """
    keys, group = distinct([_key(rollups, name) for name in (*by, "clock")])
    groups = len(keys[0])
    lists = single_chunk(rollups.column("buckets"))
    offsets = lists.offsets.to_numpy().astype(np.int64)
    cell = np.repeat(group, np.diff(offsets)) * histogram.BUCKETS
    cell += lists.values.to_numpy()[offsets[0] : offsets[-1]]
    counted = single_chunk(rollups.column("counts"))
    ends = counted.offsets.to_numpy()
    amounts = counted.values.to_numpy()[ends[0] : ends[-1]]
    cells, totals = _sum_cells(cell, amounts, groups * histogram.BUCKETS)
    nonzero = totals != 0
    cells, totals = cells[nonzero], totals[nonzero]
    count = _sum_by(group, numbers(rollups.column("count"), 0).astype(np.int64), groups)
    left = np.flatnonzero(count)
    row_of = np.full(groups, -1, np.int64)
    row_of[left] = np.arange(len(left))
    owner = row_of[cells // histogram.BUCKETS]
    cells, totals, owner = cells[owner >= 0], totals[owner >= 0], owner[owner >= 0]
    merged = _Folded(
        clock="",
        group=left,
        count=count[left],
        sum_s=_sum_by(group, numbers(rollups.column("sum_s"), 0.0), groups)[left],
        min_s=_extreme(np.minimum, group, numbers(rollups.column("min_s"), np.inf), groups)[left],
        max_s=_extreme(np.maximum, group, numbers(rollups.column("max_s"), -np.inf), groups)[left],
        length=np.bincount(owner, minlength=len(left)),
        buckets=(cells % histogram.BUCKETS).astype(np.int16),
        counts=totals,
    )
    return _table(list(zip((*by, "clock"), keys, strict=True)), [merged])


def dense(rollups: pa.Table, row: int) -> I64:
    """The counts of one row as a full histogram."""
    counts = np.zeros(histogram.BUCKETS, np.int64)
    buckets = rollups.column("buckets")[row].values.to_numpy()
    counts[buckets] = rollups.column("counts")[row].values.to_numpy()
    return counts


def sparse(rollups: pa.Table) -> list[tuple[NDArray[np.int16], I64]]:
    """The buckets in use of every row, rising, and the count in each."""
    buckets = single_chunk(rollups.column("buckets"))
    counts = single_chunk(rollups.column("counts"))
    places, amounts = buckets.values.to_numpy(), counts.values.to_numpy()
    bounds = zip(buckets.offsets.to_pylist(), counts.offsets.to_pylist(), strict=True)
    return [(places[a:b], amounts[c:d]) for (a, c), (b, d) in pairwise(bounds)]


def _key(rollups: pa.Table, name: str) -> pa.ChunkedArray:
    column = rollups.column(name)
    return column if name == "minute_ns" else text(column, UNKNOWN)


def _fold_requests(group: I64, weight: I64, groups: int) -> _Folded:
    nothing = np.full(groups, np.nan)
    return _Folded(
        clock=REQUESTS,
        group=np.arange(groups),
        count=_sum_by(group, weight, groups),
        sum_s=np.zeros(groups),
        min_s=nothing,
        max_s=nothing,
        length=np.zeros(groups, np.int64),
        buckets=np.zeros(0, np.int16),
        counts=np.zeros(0, np.int64),
    )


def _fold_clock(clock: str, values: F64, group: I64, weight: I64, groups: int) -> _Folded:
    cell = group * histogram.BUCKETS + histogram.bucket_of(values)
    cells, totals = _sum_cells(cell, weight, groups * histogram.BUCKETS)
    count = _sum_by(group, weight, groups)
    present = np.flatnonzero(count)
    return _Folded(
        clock=clock,
        group=present,
        count=count[present],
        sum_s=_sum_by(group, values * weight, groups)[present],
        min_s=_extreme(np.minimum, group, values, groups)[present],
        max_s=_extreme(np.maximum, group, values, groups)[present],
        length=np.bincount(cells // histogram.BUCKETS, minlength=groups)[present],
        buckets=(cells % histogram.BUCKETS).astype(np.int16),
        counts=totals,
    )


def _taken_back(rows: _Folded) -> _Folded:
    nothing = np.full(len(rows.group), np.nan)
    return _Folded(
        rows.clock,
        rows.group,
        -rows.count,
        -rows.sum_s,
        nothing,
        nothing,
        rows.length,
        rows.buckets,
        -rows.counts,
    )


def _table(keys: list[tuple[str, pa.Array]], folded: list[_Folded]) -> pa.Table:
    """ROLLUPS-like rows; `clock` is a key unless each of `folded` names its own."""
    names = [name for name, _ in keys]
    group = _joined(f.group for f in folded)
    columns = [array.take(pa.array(group)) for _, array in keys]
    if "clock" not in names:
        names.append("clock")
        code = np.repeat(np.arange(len(folded), dtype=np.int32), [len(f.group) for f in folded])
        clocks = pa.array([f.clock for f in folded], pa.string())
        columns.append(pa.DictionaryArray.from_arrays(pa.array(code), clocks))
    offsets = pa.array(
        np.concatenate([[0], np.cumsum(_joined(f.length for f in folded))]).astype(np.int32)
    )
    columns += [
        pa.array(_joined(f.count for f in folded)),
        pa.array(np.concatenate([f.sum_s for f in folded] or [np.zeros(0)])),
        _finite(np.concatenate([f.min_s for f in folded] or [np.zeros(0)])),
        _finite(np.concatenate([f.max_s for f in folded] or [np.zeros(0)])),
        pa.ListArray.from_arrays(offsets, pa.array(_joined(f.buckets for f in folded), pa.int16())),
        pa.ListArray.from_arrays(offsets, pa.array(_joined(f.counts for f in folded))),
    ]
    names += ["count", "sum_s", "min_s", "max_s", "buckets", "counts"]
    schema = pa.schema([ROLLUPS.field(name) for name in names])
    return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _joined(parts: Iterable[NDArray[np.integer[Any]]]) -> NDArray[np.integer[Any]]:
    arrays = list(parts)
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _finite(values: F64) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))


def _sum_by(group: I64, amounts: NDArray[_Number], groups: int) -> NDArray[_Number]:
    totals = np.zeros(groups, amounts.dtype)
    np.add.at(totals, group, amounts)
    return totals


def _sum_cells(cell: I64, amounts: I64, cells: int) -> tuple[I64, I64]:
    """Distinct cells in order and the sum of the amounts in each."""
    if cells <= _DENSE_CELLS:
        present = np.flatnonzero(np.bincount(cell, minlength=cells))
        return present, _sum_by(cell, amounts, cells)[present]
    present, position = np.unique(cell, return_inverse=True)
    return present, _sum_by(position.reshape(-1), amounts, len(present))


def _extreme(pick: np.ufunc, group: I64, values: F64, groups: int) -> F64:
    start = np.inf if pick is np.minimum else -np.inf
    best = np.full(groups, start)
    pick.at(best, group, values)
    return best
