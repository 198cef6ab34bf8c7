"""Base-2 exponential histogram of scale 5: OpenTelemetry's, and Prometheus' schema 5.

Bucket `b` of `BUCKETS` holds durations in (2^((b - 448) / 32), 2^((b - 447) / 32)] seconds,
from 61 us to 1,024 s; what lies outside goes to the first or last bucket, where only the true
minimum and maximum, kept beside the counts, still tell. A histogram is an array of counts, so
merging is addition. A quantile inside the range is off by at most `RELATIVE_ERROR`.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I16 = NDArray[np.int16]
I64 = NDArray[np.int64]

SCALE: Final = 5
BUCKETS: Final = 768
_PER_OCTAVE: Final = 1 << SCALE
_OFFSET: Final = 14 * _PER_OCTAVE
_BASE: Final = 2.0 ** (1 / _PER_OCTAVE)

LOWEST_S: Final = 2.0**-14
HIGHEST_S: Final = 2.0**10
RELATIVE_ERROR: Final = (_BASE - 1) / (_BASE + 1)  # 1.083 %

UPPER_BOUNDS_S: Final[F64] = 2.0 ** ((np.arange(BUCKETS) + 1 - _OFFSET) / _PER_OCTAVE)


def bucket_of(values_s: F64) -> I16:
    """The bucket of each duration; raises `ValueError` for one negative or not finite."""
    values = np.asarray(values_s, np.float64)
    if not np.all((values >= 0) & (values < np.inf)):
        raise ValueError("durations must be finite and >= 0 s")
    inside = np.clip(values, LOWEST_S, HIGHEST_S)
    index = np.ceil(np.log2(inside) * _PER_OCTAVE) + (_OFFSET - 1)
    return np.clip(index, 0, BUCKETS - 1).astype(np.int16)


def counts(values_s: F64, weights: I64 | None = None) -> I64:
    """Counts per bucket, each duration counted `weights` times; raises as `bucket_of`."""
    totals = np.bincount(bucket_of(values_s), weights, minlength=BUCKETS)
    return np.rint(totals).astype(np.int64)


def merge(first: I64, second: I64) -> I64:
    """The histogram of both; neither is changed. Raises `ValueError` on another shape."""
    if first.shape != (BUCKETS,) or second.shape != (BUCKETS,):
        raise ValueError(f"want {BUCKETS} counts, got {first.shape} and {second.shape}")
    return first + second


def quantile(bucket_counts: I64, q: float, min_s: float, max_s: float) -> float | None:
    """The smallest duration that at least a share `q` of all does not exceed; None if empty.

    Within `RELATIVE_ERROR`, and exact at 0 and 1. Where it falls below 61 us or above 1,024 s
    it is the true minimum or maximum.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"quantile must be within 0 and 1, got {q!r}")
    cumulative = np.cumsum(bucket_counts)
    total = int(cumulative[-1])
    if total <= 0:
        return None
    rank = rank_of(q, total)
    if rank == 1:
        return min_s
    if rank == total:
        return max_s
    bucket = int(np.searchsorted(cumulative, rank))
    if bucket == 0 and min_s < LOWEST_S:
        return min_s
    if bucket == BUCKETS - 1 and max_s > HIGHEST_S:
        return max_s
    return min(max(_middle_s(bucket), min_s), max_s)


def rank_of(q: float, total: int) -> int:
    """Which of `total` durations in order, counted from 1, is the `q` quantile."""
    return min(max(int(np.ceil(round(q * total, 6))), 1), total)


def exposition_bounds_s(step: int) -> F64:
    """Every `step`-th bucket bound: `le` values of a Prometheus histogram, a factor 2^(step/32)."""
    return UPPER_BOUNDS_S[step - 1 :: step]


def cumulative(bucket_counts: I64, step: int) -> I64:
    """How many durations are at or below each of `exposition_bounds_s(step)`.

    The last is short of those above 1,024 s only in name: they are in the last bucket, and
    its bound must be written `+Inf`.
    """
    return np.cumsum(bucket_counts)[step - 1 :: step]


def _middle_s(bucket: int) -> float:
    """The point of a bucket whose relative distance to both ends is the same."""
    upper = float(UPPER_BOUNDS_S[bucket])
    return 2 * upper / (1 + _BASE)
