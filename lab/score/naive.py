"""Three naive detectors: what an operator writes down first. They see minutes, never truth.

raw rule     p99 of 5 minutes over 1.5 x the p99 of the same hour a day ago
fixed SLO    share of requests over one deadline, in two windows at once, times a burn rate
3 sigma      any metric further than three standard deviations from its last day's mean
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.score.minutes import (
    LOW_S,
    MIDDLES_S,
    MINUTE_NS,
    SCALE,
    over,
    rolling_quantile,
    rolling_sum,
)
from tailburn.lab.score.outcome import Page

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Flags = NDArray[np.bool_]

DAY: Final = 1_440
"""Minutes."""


@dataclass(frozen=True)
class RawRule:
    """p99 of `window` minutes above `ratio` x the p99 of the hour around the same time before."""

    ratio: float = 1.5
    window: int = 5
    base: int = 60
    back: int = DAY
    q: float = 0.99

    def baseline(self, counts: U32) -> F64:
        """Of each minute, the p99 (s) of the hour whose middle lies a day back; NaN at first."""
        hour = rolling_quantile(counts, self.base, self.q, MIDDLES_S)
        out = np.full(len(counts), np.nan)
        shift = self.back - self.base // 2
        first = shift + self.base - 1
        if len(counts) > first:
            out[first:] = hour[first - shift : len(counts) - shift]
        return out

    def __call__(self, counts: U32) -> Flags:
        """Whether it fires at the end of each minute."""
        recent = rolling_quantile(counts, self.window, self.q, MIDDLES_S)
        return np.asarray(recent > self.ratio * self.baseline(counts))


@dataclass(frozen=True)
class Guarded:
    """The raw rule, held back until the count of late ones is beyond chance, and for an hour.

    `least` requests over the limit in 5 minutes, more than a binomial of 1 % gives with
    chance `p`; and the hour's own p99 above `hour_ratio` x the baseline (0: not asked).
    """

    raw: RawRule = RawRule()
    p: float = 1e-4
    least: int = 5
    hour_ratio: float = 1.25

    def __call__(self, counts: U32) -> Flags:
        """Whether it fires at the end of each minute."""
        base = self.raw.baseline(counts)
        late = rolling_sum(over(counts, self.raw.ratio * base, LOW_S, SCALE), self.raw.window)
        n = rolling_sum(counts.sum(axis=1, dtype=np.int64), self.raw.window)
        fires = self.raw(counts) & (late >= self.least) & (late >= beyond_chance(n, self.p))
        if self.hour_ratio:
            hour = rolling_quantile(counts, self.raw.base, self.raw.q, MIDDLES_S)
            fires &= hour > self.hour_ratio * base
        return np.asarray(fires)


def beyond_chance(n: I64 | F64, p: float, share: float = 0.01) -> I64:
    """Least count of `n` that a binomial of that share reaches with chance under p."""
    sizes, which = np.unique(np.asarray(n, np.int64), return_inverse=True)
    found = np.zeros(len(sizes), np.int64)
    most = int(sizes.max(initial=0))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    for i, size in enumerate(sizes):
        found[i] = _least(int(size), p, share, factorial)
    return found[which]


def _least(n: int, p: float, share: float, factorial: F64) -> int:
    """By the tail's sum from far above its mean downwards; `factorial`: logarithms up to n's."""
    top = min(n, int(n * share + 12 * np.sqrt(n * share) + 40))
    k = np.arange(top + 1)
    log_pmf = (
        factorial[n]
        - factorial[k]
        - factorial[n - k]
        + k * np.log(share)
        + (n - k) * np.log1p(-share)
    )
    tail = np.cumsum(np.exp(log_pmf)[::-1])[::-1]
    under = np.flatnonzero(tail < p)
    return int(under[0]) if len(under) else top + 1


@dataclass(frozen=True)
class Windows:
    """A pair of windows (minutes) and how many times faster than allowed the budget goes."""

    long: int
    short: int
    factor: float
    severity: str


WORKBOOK: Final = (
    Windows(60, 5, 14.4, "page"),
    Windows(360, 30, 6.0, "page"),
    Windows(4_320, 360, 1.0, "ticket"),
)
"""Of Google's SRE Workbook, chapter 5, for a window of 30 days."""


@dataclass(frozen=True)
class FixedSlo:
    """Requests over one deadline burn a budget; both windows must burn too fast."""

    deadline_s: float
    budget: float = 0.01

    def __call__(self, counts: U32, windows: Windows = WORKBOOK[0]) -> Flags:
        """Whether a pair of windows fires at the end of each minute."""
        bad = self.late(counts)
        total = counts.sum(axis=1, dtype=np.int64)
        fires = np.ones(len(counts), bool)
        for window in (windows.long, windows.short):
            n = np.maximum(rolling_sum(total, window), 1)
            fires &= rolling_sum(bad, window) / n > windows.factor * self.budget
        return fires

    def late(self, counts: U32) -> I64:
        """How many of each minute miss the deadline."""
        return over(counts, np.full(len(counts), self.deadline_s), LOW_S, SCALE)


@dataclass(frozen=True)
class ThreeSigma:
    """Means of `window` minutes, each beside mean and spread of the last day's."""

    sigmas: float = 3.0
    window: int = 5
    history: int = DAY

    def z(self, values: F64) -> F64:
        """[minute, metric]: how many standard deviations away; NaN without history."""
        means = rolling_mean(values, self.window)
        base = _before(means, self.window)
        middle = rolling_mean(base, self.history, least=self.history // 4)
        square = rolling_mean(base**2, self.history, least=self.history // 4)
        # What hardly moves has next to no spread: a thousandth of its level at least.
        spread = np.sqrt(np.maximum(square - middle**2, 0.0))
        floor = np.maximum(1e-3 * np.abs(middle), 1e-9)
        return np.asarray((means - middle) / np.maximum(spread, floor))

    def __call__(self, values: F64) -> Flags:
        """[minute, metric]: whether it is too far away."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.z(values)) > self.sigmas)


def rolling_mean(values: F64, window: int, least: int = 1) -> F64:
    """Mean of what is there of the `window` rows that end with each; NaN under `least`."""
    there = ~np.isnan(values)
    total = np.cumsum(np.where(there, values, 0.0), axis=0, dtype=np.float64)
    count = np.cumsum(there, axis=0, dtype=np.int64)
    total[window:] -= total[:-window].copy()
    count[window:] -= count[:-window].copy()
    return np.where(count >= least, total / np.maximum(count, 1), np.nan)


def _before(values: F64, rows: int) -> F64:
    out = np.full(values.shape, np.nan)
    out[rows:] = values[:-rows]
    return out


def pages_of(
    fires: Flags, start_ns: int, severity: str, alert: str, dims: dict[str, str]
) -> tuple[Page, ...]:
    """Each stretch of minutes in which it fires; it rings at the end of the first."""
    padded = np.concatenate([[False], fires, [False]])
    turns = np.flatnonzero(padded[1:] != padded[:-1])
    spans: Sequence[tuple[int, int]] = [(int(a), int(b)) for a, b in turns.reshape(-1, 2)]
    return tuple(
        Page(
            start_ns + (a + 1) * MINUTE_NS,
            None if b == len(fires) else start_ns + (b + 1) * MINUTE_NS,
            severity,
            alert,
            dims,
        )
        for a, b in spans
    )
