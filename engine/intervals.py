"""Bounds of a quantile, a share and a count over time, by their exact distributions.

Quantiles: order statistics. Of n independent values, so many that a binomial says lie below the
true q quantile: the l-th and u-th smallest hold it between them with at least the level, whatever
the distribution (H. A. David and H. N. Nagaraja, "Order Statistics", 3rd ed. 2003, section 7.1).
Shares: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413. Counts over time: F. Garwood,
Biometrika 28 (1936) 437-442. All take what is counted as independent of each other: requests that
wait in one queue are not, so bounds of quantiles are narrower than the truth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailburn.engine.grouping import F64

LEVEL: Final = 0.95
_WIDE: Final = 12.0  # standard deviations: beyond lies less than 1e-30
_ROOM: Final = 40.0  # and so many counts, for means near zero
_STEPS: Final = 100


@dataclass(frozen=True)
class Ranks:
    """Which of n values in order, counted from 1, bound a quantile; None: no such value."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Bounds:
    """A figure and what it may truly be."""

    value: float
    low: float
    high: float


def quantile_ranks(count: int, q: float, level: float = LEVEL) -> Ranks:
    """The narrowest ranks that hold the true quantile, with equal chances to miss on each side.

    `low`: the largest l with P(fewer than l of `count` are below) <= (1 - level) / 2; `high` the
    smallest u with P(u or more are below) <= that. Raises ValueError for a quantile, level or
    count that is none.
    """
    if not (0 < q < 1 and 0 < level < 1) or count < 0:
        raise ValueError(f"want 0 < q < 1, 0 < level < 1, count >= 0, got {q}, {level}, {count}")
    if count == 0:
        return Ranks(None, None)
    miss = (1 - level) / 2
    first, chance = _binomial(count, q)
    at_most = np.cumsum(chance)
    low = first + int(np.searchsorted(at_most, miss, side="right"))
    at_least = np.cumsum(chance[::-1])[::-1]
    beyond = np.flatnonzero(at_least <= miss)
    high = first + (int(beyond[0]) if len(beyond) else len(chance))
    return Ranks(low if low >= 1 else None, high if high <= count else None)


def least_count(q: float, level: float = LEVEL) -> int:
    """How many values it takes until a quantile has an upper bound: 1 - q^n >= (1 + level) / 2."""
    return math.ceil(math.log((1 - level) / 2) / math.log(q))


def share(hits: int, count: int, level: float = LEVEL) -> Bounds | None:
    """`hits` of `count` as a ratio; None of nothing."""
    if not 0 <= hits <= count:
        raise ValueError(f"want hits within their count, got {hits} of {count}")
    if count == 0:
        return None
    miss = (1 - level) / 2
    low = 0.0 if hits == 0 else _root(lambda p: _at_least(hits, count, p) - miss, 0.0, 1.0)
    high = 1.0
    if hits < count:
        high = _root(lambda p: 1 - _at_least(hits + 1, count, p) - miss, 0.0, 1.0)
    return Bounds(hits / count, low, high)


def rate(events: int, over: float, level: float = LEVEL) -> Bounds | None:
    """`events` per unit of `over`, the time they were counted in; None of no time."""
    if events < 0:
        raise ValueError(f"want events >= 0, got {events}")
    if over <= 0:
        return None
    miss, most = (1 - level) / 2, 10.0 + 2 * events + 10 * math.sqrt(events + 1)
    low = 0.0
    if events:
        low = _root(lambda mean: 1 - _poisson_at_most(events - 1, mean) - miss, 0.0, most)
    high = _root(lambda mean: _poisson_at_most(events, mean) - miss, 0.0, most)
    return Bounds(events / over, low / over, high / over)


def _binomial(count: int, p: float) -> tuple[int, F64]:
    """Chances of k, k + 1, ... of `count`, from the first that is worth a word, and that first.

    From the ratio of neighbours, so that no factorial of millions is taken.
    """
    mean, deviation = count * p, math.sqrt(count * p * (1 - p))
    first = max(int(mean - _WIDE * deviation - _ROOM), 0)
    last = min(int(mean + _WIDE * deviation + _ROOM) + 1, count)
    k = np.arange(first, last, dtype=np.float64)
    steps = np.log((count - k) / (k + 1)) + (math.log(p) - math.log1p(-p))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    chance = np.exp(logs - logs.max())
    found: F64 = chance / chance.sum()
    return first, found


def _at_least(hits: int, count: int, p: float) -> float:
    if not 0 < p < 1:
        return float(p >= 1)
    first, chance = _binomial(count, p)
    return float(chance[max(hits - first, 0) :].sum())


def _poisson_at_most(events: int, mean: float) -> float:
    if mean <= 0:
        return 1.0
    k = np.arange(1, events + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(math.log(mean) - np.log(k))]) - mean
    top = float(logs.max())
    return min(math.exp(top) * float(np.exp(logs - top).sum()), 1.0)


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function is zero."""
    rises = of(high) > of(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (of(middle) > 0) == rises:
            high = middle
        else:
            low = middle
    return (low + high) / 2
