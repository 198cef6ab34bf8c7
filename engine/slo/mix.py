"""Whether the requests are still those that an SLO was made of: the population stability index.

PSI = sum over classes of (now - then) ln(now / then), of shares: the symmetric divergence of
Kullback and Leibler (1951). By rule of thumb a population has not changed below 0.1 and has
much above 0.25 (Siddiqi, Credit Risk Scorecards, 2006); 0.2 is asked for here. Of the same
population it is about chi squared with one degree of freedom less than classes, times
1/then + 1/now requests (Yurdakul, Statistical Properties of the Population Stability Index,
2018): it must be beyond that too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import numpy as np

from tailburn.engine.grouping import F64
from tailburn.engine.slo.model import Mix

MOVED: Final = 0.2
MINIMUM_COUNT: Final = 300
"""With fewer requests nothing is said."""
LENGTHS: Final = ("uncached_tokens", "prompt_tokens", "output_tokens")
"""Measures whose classes are named by the least number of tokens in them."""
KINDS: Final = ("model", "streamed")
OTHERS: Final = "others"
_BY_CHANCE: Final = 1e-3
_HALF: Final = 0.5  # added to each class, so that an empty one is rare and not impossible


class Verdict(StrEnum):
    """What is said of a measure."""

    MOVED = "moved"
    ALIKE = "alike"
    THIN = "thin"  # too few requests now


@dataclass(frozen=True)
class Change:
    """One measure of the mix: then and now."""

    of: str  # of LENGTHS or KINDS
    verdict: Verdict
    psi: float | None  # None: thin
    limit: float  # above it the mix has moved
    requests: int  # now, that tell
    shares: tuple[tuple[str, float, float], ...]  # class, share then, share now


def changes(mix: Mix, now: Mapping[str, Mapping[str, int]]) -> tuple[Change, ...]:
    """How far each measure of a mix is from what it was; `now`: requests by measure and class."""
    return tuple(
        _change(of, then, mix.requests, now.get(of, {})) for of, then in mix.shares.items()
    )


def stability_index(then: F64, now: F64) -> float:
    """The index of counts of the same classes in two populations."""
    p, q = ((c + _HALF) / (c.sum() + _HALF * len(c)) for c in (then, now))
    return float(((q - p) * np.log(q / p)).sum())


def limit(classes: int, then: int, now: int) -> float:
    """What the index must be above: 0.2, and once in a thousand of the same population."""
    if classes < 2 or not (then and now):
        return MOVED
    return max(MOVED, _chi_squared(classes - 1) * (1 / then + 1 / now))


def _change(of: str, then: Mapping[str, float], requests: int, now: Mapping[str, int]) -> Change:
    known = sum(count for name, count in now.items() if name in then)
    count = sum(now.values())
    names = [*then, OTHERS] if of in KINDS else list(then)
    was = np.array([then.get(name, 0.0) * requests for name in names])
    is_now = np.array([now.get(name, 0) for name in names], np.float64)
    if of in KINDS:
        is_now[-1] += count - known
    least = limit(len(names), requests, count)
    shares = tuple(
        (name, float(a), float(b))
        for name, a, b in zip(names, was / max(was.sum(), 1), is_now / max(count, 1), strict=True)
    )
    if count < MINIMUM_COUNT:
        return Change(of, Verdict.THIN, None, least, count, shares)
    psi = stability_index(was, is_now)
    return Change(of, Verdict.MOVED if psi > least else Verdict.ALIKE, psi, least, count, shares)


def _chi_squared(degrees: int) -> float:
    """Exceeded by chance `_BY_CHANCE`, within 1 % (Wilson and Hilferty 1931)."""
    z = NormalDist().inv_cdf(1 - _BY_CHANCE)
    part = 2 / (9 * degrees)
    return degrees * (1 - part + z * math.sqrt(part)) ** 3
