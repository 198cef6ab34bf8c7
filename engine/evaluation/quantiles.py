"""Prometheus' `histogram_quantile` on the buckets that `/metrics` exposes, many at once.

Linear within a bucket, as in promql/quantile.go of Prometheus: a percentile is known to the
width of its bucket, a factor of 1.41.
"""

from typing import Final

import numpy as np

from tailburn.engine import histogram
from tailburn.engine.grouping import F64, I64

BOUND_STEP: Final = 16
"""Of the buckets' bounds each so many-th is exposed."""
BOUNDS_S: Final[F64] = histogram.exposition_bounds_s(BOUND_STEP)[:-1]
"""The last bucket is open, and holds what is above all of them."""
EXPOSED: Final = len(BOUNDS_S) + 1


def quantiles(counts: F64 | I64, q: float) -> F64:
    """The `q` quantile of each row of exposed buckets (rows, EXPOSED) in s; nan where it is empty.

    In the open bucket it is the highest bound. Negative counts, of versions that were taken
    back after their minute had been let go, are none.
    """
    cumulative = np.cumsum(np.maximum(counts, 0), axis=1, dtype=np.float64)
    total = cumulative[:, -1]
    rank = q * total
    bucket = np.minimum((cumulative < rank[:, None]).sum(axis=1), EXPOSED - 1)
    row = np.arange(len(cumulative))
    inside = np.minimum(bucket, EXPOSED - 2)
    low = np.where(inside > 0, BOUNDS_S[inside - 1], 0.0)
    below = np.where(inside > 0, cumulative[row, inside - 1], 0.0)
    held = cumulative[row, inside] - below
    share = np.divide(rank - below, held, out=np.zeros(len(row)), where=held > 0)
    value = np.where(
        bucket < EXPOSED - 1, low + (BOUNDS_S[inside] - low) * share, BOUNDS_S[EXPOSED - 2]
    )
    return np.where(total > 0, value, np.nan)
