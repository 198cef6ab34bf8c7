"""Histograms of many groups as one matrix, and the quantile of each row at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailburn.engine import histogram
from tailburn.engine.grouping import F64, I64, numbers, single_chunk


@dataclass(frozen=True)
class Dense:
    """Counts of the buckets from `lowest` on, one row a group; times in s."""

    lowest: int
    counts: I64
    count: I64
    min_s: F64  # inf where empty
    max_s: F64  # -inf where empty

    def grouped(self, group: I64, groups: int) -> "Dense":
        """Rows of the same group added up."""
        counts = np.zeros((groups, self.counts.shape[1]), np.int64)
        count = np.zeros(groups, np.int64)
        low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
        np.add.at(counts, group, self.counts)
        np.add.at(count, group, self.count)
        np.minimum.at(low, group, self.min_s)
        np.maximum.at(high, group, self.max_s)
        return Dense(self.lowest, counts, count, low, high)


def accumulate(rows: pa.Table, group: I64, groups: int) -> Dense:
    """The histograms of rows with `count, min_s, max_s, buckets, counts`, added up by group.

    A group that more was taken back from than it had is empty.
    """
    used = single_chunk(rows.column("buckets"))
    ends = used.offsets.to_numpy().astype(np.int64)
    bucket = used.values.to_numpy()[ends[0] : ends[-1]].astype(np.int64)
    listed = single_chunk(rows.column("counts"))
    first, last = listed.offsets[0].as_py(), listed.offsets[-1].as_py()
    amount = listed.values.to_numpy()[first:last]
    lowest = int(bucket.min()) if len(bucket) else 0
    width = int(bucket.max()) - lowest + 1 if len(bucket) else 1
    cell = np.repeat(group * width, np.diff(ends)) + (bucket - lowest)
    counts = np.bincount(cell, amount, groups * width).reshape(groups, width)
    count = np.bincount(group, numbers(rows.column("count"), 0), groups)
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group, numbers(rows.column("min_s"), np.inf))
    np.maximum.at(high, group, numbers(rows.column("max_s"), -np.inf))
    return Dense(
        lowest,
        np.rint(counts).astype(np.int64),
        np.maximum(np.rint(count), 0).astype(np.int64),
        low,
        high,
    )


def quantiles(dense: Dense, q: float) -> F64:
    """`histogram.quantile` of each row in s, nan where empty. Raises `ValueError` for a bad q."""
    if not 0 <= q <= 1:
        raise ValueError(f"quantile must be within 0 and 1, got {q!r}")
    reached = np.cumsum(dense.counts, axis=1)
    total = reached[:, -1]
    rank = np.clip(np.ceil(np.round(q * total, 6)), 1, np.maximum(total, 1))
    bucket = np.argmax(reached >= rank[:, None], axis=1) + dense.lowest
    upper = histogram.UPPER_BOUNDS_S[bucket]
    middle = upper * (1 - histogram.RELATIVE_ERROR)
    value = np.clip(middle, dense.min_s, np.maximum(dense.max_s, dense.min_s))
    below = (bucket == 0) & (dense.min_s < histogram.LOWEST_S)
    above = (bucket == histogram.BUCKETS - 1) & (dense.max_s > histogram.HIGHEST_S)
    value = np.where((rank == 1) | below, dense.min_s, value)
    value = np.where(((rank == total) & (rank > 1)) | (above & ~below), dense.max_s, value)
    return np.where(total > 0, value, np.nan)
