"""Histograms of a clock minute by minute, and quantiles over windows of them.

Buckets are those of a base-2 exponential histogram of scale 5: 32 an octave, from 61 us to
1,024 s, so that a bucket's middle is within 1.1 % of what lies in it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.compiled import compiled

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

MINUTE_NS: Final = 60 * 10**9
SCALE: Final = 32
LOW_S: Final = 2.0**-14
BUCKETS: Final = 24 * SCALE

MIDDLES_S: Final[F64] = LOW_S * 2.0 ** ((np.arange(BUCKETS) + 0.5) / SCALE)
"""A bucket's value: the geometric middle, in s."""


def bucket_of(values_s: F64) -> I64:
    """The bucket of each value; what is outside goes into the first or last."""
    place = np.floor(np.log2(np.maximum(values_s, LOW_S) / LOW_S) * SCALE)
    return np.clip(place, 0, BUCKETS - 1).astype(np.int64)


def by_minute(minute: I64, values_s: F64, minutes: int) -> U32:
    """Counts [minute, bucket] of values (s), each in its minute (0 to `minutes` - 1)."""
    counts = np.bincount(minute * BUCKETS + bucket_of(values_s), minlength=minutes * BUCKETS)
    return counts.reshape(minutes, BUCKETS).astype(np.uint32)


@compiled
def rolling_quantile(counts: U32, window: int, q: float, middles: F64) -> F64:
    """Quantile q of the `window` minutes that end with each minute; NaN where they are empty.

    As numpy's: between the two nearest values, at rank q (n - 1).
    """
    minutes, buckets = counts.shape
    out = np.full(minutes, np.nan)
    held = np.zeros(buckets, np.int64)
    total = 0
    for m in range(minutes):
        for b in range(buckets):
            held[b] += counts[m, b]
            total += counts[m, b]
        if m >= window:
            for b in range(buckets):
                held[b] -= counts[m - window, b]
                total -= counts[m - window, b]
        if total:
            rank = q * (total - 1)
            above = total - 1 - int(np.floor(rank))
            # From the top: `above` values lie over the lower of the two.
            seen = 0
            upper = -1
            for b in range(buckets - 1, -1, -1):
                seen += held[b]
                if upper < 0 and seen >= max(above, 1):
                    upper = b
                if seen > above:
                    part = rank - np.floor(rank)
                    low = middles[b]
                    high = middles[upper] if above else low
                    out[m] = low + part * (high - low)
                    break
    return out


@compiled
def over(counts: U32, limit_s: F64, low_s: float, scale: int) -> I64:
    """How many of each minute lie above that minute's limit (s); within a bucket, its share."""
    minutes, buckets = counts.shape
    out = np.zeros(minutes, np.int64)
    for m in range(minutes):
        if np.isnan(limit_s[m]):
            continue
        place = np.log2(max(limit_s[m], low_s) / low_s) * scale
        b0 = min(int(np.floor(place)), buckets - 1)
        for b in range(b0 + 1, buckets):
            out[m] += counts[m, b]
        out[m] += int(np.round(counts[m, b0] * (1.0 - min(place - b0, 1.0))))
    return out


def mean_there(values: F64, axis: int) -> F64:
    """Mean of what is there along an axis; NaN where nothing is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def rolling_sum(values: I64 | F64, window: int) -> I64 | F64:
    """Sum over the `window` minutes that end with each one; fewer at the begin."""
    total = np.concatenate([[0], np.cumsum(values)])
    first = np.maximum(np.arange(len(values)) + 1 - window, 0)
    return np.asarray(total[1:] - total[first])
