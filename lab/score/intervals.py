"""Figures with the range they may truly lie in, at 95 %.

Shares: E. B. Wilson, "Probable inference", JASA 22 (1927) 209-212. Counts over time:
F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936) 437-442
(exact). Quantiles: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993),
chapter 13, percentiles of resamples; whole seeds are drawn, since runs of one seed share
their warm-up and are not independent.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Z95: Final = 1.959963984540054
F64 = NDArray[np.float64]
RESAMPLES: Final = 1_000


@dataclass(frozen=True)
class Estimate:
    """A figure, the bounds of its interval, and how many it rests on.

    None: nothing to estimate from (value), or no bound to be had (low, high). An infinite
    value is "never": more than half (a median) were not seen at all.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int

    def to_json(self) -> dict[str, Any]:
        """With "never" for what is infinite, which JSON has no number for."""
        return {k: "never" if v == math.inf else v for k, v in asdict(self).items()}


NOTHING: Final = Estimate(None, None, None, 0)


def wilson(hits: int, count: int) -> Estimate:
    """A share: `hits` of `count`."""
    if count == 0:
        return NOTHING
    p, z2 = hits / count, Z95**2
    middle = (p + z2 / (2 * count)) / (1 + z2 / count)
    half = Z95 / (1 + z2 / count) * math.sqrt(p * (1 - p) / count + z2 / (4 * count**2))
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == count else middle + half
    return Estimate(p, low, high, count)


def poisson(events: int, over: float) -> Estimate:
    """Events per unit of what they were counted over; exact bounds."""
    if over <= 0:
        return NOTHING
    low = 0.0 if events == 0 else _mean_where(events - 1, 0.975)
    return Estimate(events / over, low / over, _mean_where(events, 0.025) / over, events)


def _mean_where(events: int, chance: float) -> float:
    """The mean of the Poisson count that is at most `events` with this chance."""
    low, high = 0.0, 10.0 + 2.0 * events + 10.0 * math.sqrt(events + 1.0)
    for _ in range(100):
        middle = (low + high) / 2
        if _at_most(events, middle) > chance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_most(events: int, mean: float) -> float:
    """Chance of at most so many events of a Poisson count."""
    if mean <= 0:
        return 1.0
    k = np.arange(events + 1)
    logs = k * math.log(mean) - mean - np.concatenate([[0.0], np.cumsum(np.log(k[1:]))])
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


def bootstrap(
    values: Mapping[Any, Sequence[float]],
    of: Callable[[F64], float],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A figure `of` all values, which are given by group (seed); groups are drawn anew.

    With one group alone its values are drawn instead: that leaves out how seeds differ.
    """
    groups = [np.asarray(v, np.float64) for v in values.values() if len(v)]
    if not groups:
        return NOTHING
    whole = np.concatenate(groups)
    if len(groups) == 1:
        groups = [np.array([v]) for v in whole]
    if len(groups) == 1:
        return Estimate(of(whole), None, None, 1)
    draw = np.random.default_rng(seed)
    found = [
        of(np.concatenate([groups[i] for i in draw.integers(0, len(groups), len(groups))]))
        for _ in range(resamples)
    ]
    low, high = quantile(np.asarray(found), 0.025), quantile(np.asarray(found), 0.975)
    return Estimate(of(whole), low, high, len(whole))


def quantile(values: F64, q: float) -> float:
    """The smallest value that has at least a share q at or below it; infinite ones count."""
    ordered = np.sort(values)
    return float(ordered[min(max(math.ceil(q * len(ordered) - 1e-9), 1), len(ordered)) - 1])


def median(values: F64) -> float:
    """The middle one, the lower of two: an infinite one among them stays infinite."""
    return quantile(values, 0.5)


def p90(values: F64) -> float:
    """Nine of ten lie at or below it."""
    return quantile(values, 0.9)
