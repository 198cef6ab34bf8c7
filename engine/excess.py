"""Which hop owns the excess of the slow requests over the rest: the one function for it.

The excess of a slow request is its time minus the mean of the requests that aren't slow and
have about as many uncached prompt tokens (the same power of two). Where fewer than
`MIN_BASELINE` of those exist, all requests that aren't slow are its baseline. All sums are
whole nanoseconds, so the hops' excesses add up to the total exactly. A request of sampling
weight w counts round(w) times, at least once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine.grouping import F64, I64, numbers, weights
from tailburn.engine.names import (
    DECODE_HOP_COLUMNS,
    HOPS,
    TTFT_HOP_COLUMNS,
    UNATTRIBUTED,
)

Mask = NDArray[np.bool_]
Clock = Literal["ttft", "decode"]

OWNER_SHARE: Final = 0.5
MIN_BASELINE: Final = 5
PLACES: Final = (*HOPS, UNATTRIBUTED)
_COLUMNS: Final = {"ttft": TTFT_HOP_COLUMNS, "decode": DECODE_HOP_COLUMNS}
_NS: Final = 1e9
NEEDED_COLUMNS: Final = (
    *TTFT_HOP_COLUMNS,
    *DECODE_HOP_COLUMNS,
    "prompt_tokens",
    "cached_tokens",
    "clock_offset_half_width_s",
    "weight",
)


@dataclass(frozen=True)
class Slowest:
    """The slowest share of the measured requests, at least one."""

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share of slowest must be within 0 and 1, got {self.share!r}")


@dataclass(frozen=True)
class Above:
    """The requests that took longer than this."""

    threshold_s: float


@dataclass(frozen=True)
class HopTime:
    """One hop of the plain breakdown, over all measured requests, 0 where it had no part."""

    hop: str
    total_ns: int
    mean_s: float
    median_s: float
    share: float  # of the clock


@dataclass(frozen=True)
class Breakdown:
    """Where the time of a clock went. The hops' `total_ns` add up to `total_ns`."""

    clock: Clock
    count: int  # weighted
    unmeasured: int  # requests without this clock
    total_ns: int
    mean_s: float | None
    median_s: float | None
    hops: tuple[HopTime, ...]  # those that took any time, in order of depth


@dataclass(frozen=True)
class HopExcess:
    """What one hop adds to the slow requests."""

    hop: str
    excess_ns: int  # summed over the slow requests
    excess_s: float  # mean per slow request
    share: float | None  # of the total excess; None where there is none
    slow_mean_s: float
    baseline_mean_s: float
    clock_error_s: float | None  # half width, edges only; None: on one clock, or not known


@dataclass(frozen=True)
class Excess:
    """The slow requests against the rest. The hops' `excess_ns` add up to `excess_ns`."""

    clock: Clock
    slow: int  # weighted
    rest: int  # weighted
    unmeasured: int  # requests without this clock
    matched: int  # slow requests with a baseline of their own prompt length, weighted
    fastest_slow_s: float | None
    excess_ns: int
    excess_s: float  # mean per slow request
    hops: tuple[HopExcess, ...]  # largest excess first
    owner: str | None  # the hop with at least `OWNER_SHARE` of a positive excess


@dataclass(frozen=True)
class Measured:
    """The requests that have the clock: whole nanoseconds per request and hop."""

    row: I64  # of the table that was given
    hop_ns: I64  # (n, hops)
    total_ns: I64
    weight: I64
    prompt: I64  # stratum of uncached prompt tokens
    half_width_s: F64  # nan: not known
    unmeasured: int


def breakdown(requests: pa.Table, clock: Clock) -> Breakdown:
    """Mean and median of every hop of the clock."""
    rows = measure(requests, clock)
    count = int(rows.weight.sum())
    if count == 0:
        return Breakdown(clock, 0, rows.unmeasured, 0, None, None, ())
    sums = rows.weight @ rows.hop_ns
    total = int(sums.sum())
    hops = tuple(
        HopTime(
            hop=PLACES[i],
            total_ns=int(sums[i]),
            mean_s=int(sums[i]) / count / _NS,
            median_s=_median(rows.hop_ns[:, i], rows.weight) / _NS,
            share=int(sums[i]) / total,
        )
        for i in np.flatnonzero(sums)
    )
    median_s = _median(rows.total_ns, rows.weight) / _NS
    return Breakdown(clock, count, rows.unmeasured, total, total / count / _NS, median_s, hops)


def excess(requests: pa.Table, clock: Clock, slow: Slowest | Above) -> Excess:
    """Split the slow requests' excess over the rest by hop; empty where either is missing.

    `requests` needs `NEEDED_COLUMNS`. Which are slow is judged by this same clock.
    """
    rows = measure(requests, clock)
    is_slow = _slow_mask(rows, slow)
    slow_count = int(rows.weight[is_slow].sum())
    rest_count = int(rows.weight[~is_slow].sum())
    fastest = float(rows.total_ns[is_slow].min()) / _NS if slow_count else None
    if not slow_count or not rest_count:
        return Excess(clock, slow_count, rest_count, rows.unmeasured, 0, fastest, 0, 0.0, (), None)
    slow_sum = rows.weight[is_slow] @ rows.hop_ns[is_slow]
    baseline_sum, matched = _baseline(rows, is_slow)
    over = slow_sum - baseline_sum
    total = int(over.sum())
    error_s = _mean_half_width(rows, is_slow)
    hops = [
        HopExcess(
            hop=PLACES[i],
            excess_ns=int(over[i]),
            excess_s=int(over[i]) / slow_count / _NS,
            share=int(over[i]) / total if total > 0 else None,
            slow_mean_s=int(slow_sum[i]) / slow_count / _NS,
            baseline_mean_s=int(baseline_sum[i]) / slow_count / _NS,
            clock_error_s=error_s if ">" in PLACES[i] else None,
        )
        for i in np.flatnonzero((slow_sum != 0) | (baseline_sum != 0))
    ]
    hops.sort(key=lambda h: -h.excess_ns)
    return Excess(
        clock=clock,
        slow=slow_count,
        rest=rest_count,
        unmeasured=rows.unmeasured,
        matched=matched,
        fastest_slow_s=fastest,
        excess_ns=total,
        excess_s=total / slow_count / _NS,
        hops=tuple(hops),
        owner=_owner(hops),
    )


def _owner(hops: Sequence[HopExcess]) -> str | None:
    """The hop of the largest share, where that is enough to own the excess."""
    owners = [h.hop for h in hops if h.share is not None and h.share >= OWNER_SHARE]
    return next((hop for hop in owners if hop != UNATTRIBUTED), None)


def measure(requests: pa.Table, clock: Clock) -> Measured:
    """The breakdown of a clock as numbers; `requests` needs `NEEDED_COLUMNS`."""
    columns = [requests.column(c) for c in _COLUMNS[clock]]
    seconds = np.stack([numbers(c, np.nan) for c in columns], axis=1)
    measured = ~np.isnan(seconds).all(axis=1)
    hop_ns = np.rint(np.nan_to_num(seconds[measured]) * _NS).astype(np.int64)
    weight = weights(requests)
    return Measured(
        row=np.flatnonzero(measured),
        hop_ns=hop_ns,
        total_ns=hop_ns.sum(axis=1),
        weight=weight[measured],
        prompt=_prompt_strata(requests)[measured],
        half_width_s=numbers(requests.column("clock_offset_half_width_s"), np.nan)[measured],
        unmeasured=int((~measured).sum()),
    )


def _slow_mask(rows: Measured, slow: Slowest | Above) -> Mask:
    if isinstance(slow, Above):
        return rows.total_ns > round(slow.threshold_s * _NS)
    mask = np.zeros(len(rows.total_ns), bool)
    order = np.argsort(-rows.total_ns, kind="stable")
    taken = np.cumsum(rows.weight[order])
    want = slow.share * int(rows.weight.sum())
    mask[order[taken - rows.weight[order] < want]] = True
    return mask


def _baseline(rows: Measured, is_slow: Mask) -> tuple[I64, int]:
    """What the slow requests would have taken per hop, in sum, and how many were matched."""
    everywhere = _mean_ns(rows, ~is_slow)
    expected = np.zeros(rows.hop_ns.shape[1], np.int64)
    matched = 0
    for stratum in np.unique(rows.prompt[is_slow]):
        here = rows.prompt == stratum
        slow_weight = int(rows.weight[here & is_slow].sum())
        alike = here & ~is_slow
        if int(alike.sum()) >= MIN_BASELINE:
            expected += slow_weight * _mean_ns(rows, alike)
            matched += slow_weight
        else:
            expected += slow_weight * everywhere
    return expected, matched


def _mean_ns(rows: Measured, mask: Mask) -> I64:
    weight = rows.weight[mask]
    mean: F64 = (weight @ rows.hop_ns[mask]) / weight.sum()
    return np.rint(mean).astype(np.int64)


def _mean_half_width(rows: Measured, mask: Mask) -> float | None:
    """Mean half width of the clock offsets of the masked requests that tell one."""
    known = mask & ~np.isnan(rows.half_width_s)
    if not known.any():
        return None
    return float(np.average(rows.half_width_s[known], weights=rows.weight[known]))


def _prompt_strata(requests: pa.Table) -> I64:
    """Power of two of the uncached prompt tokens; -1 where they aren't known."""
    prompt = numbers(requests.column("prompt_tokens"), np.nan)
    uncached = np.maximum(prompt - numbers(requests.column("cached_tokens"), 0.0), 1)
    return np.where(np.isnan(prompt), -1, np.floor(np.log2(uncached))).astype(np.int64)


def _median(values: I64, weight: I64) -> float:
    """The weighted median: the mean of the two in the middle where they differ."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    total = int(reached[-1])
    low = values[order[np.searchsorted(reached, (total + 1) // 2)]]
    high = values[order[np.searchsorted(reached, total // 2 + 1)]]
    return (int(low) + int(high)) / 2
