"""The deadlines that the requests of a stretch had, summed up by series."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.baseline.deadline import Deadlines, Learnt, Outside
from tailburn.engine.baseline.load import BASES, UNTOLD_HITS, Basis, Matched, basis_of, counted
from tailburn.engine.baseline.pooling import series_of
from tailburn.engine.grouping import I64, numbers, weights

_BEYOND: Final = tuple(one for one in Outside if one)


@dataclass(frozen=True)
class Held:
    """What the requests of one series were held against at the load that they met.

    Figures of the past are those of the deadline that most of them had.
    """

    requests: int  # that have the clock, weighted
    rate_per_s: float | None  # the median load; None: not known
    tokens: float | None  # the median length matched on; None: it isn't
    deadline_s: float | None  # the median; None: no deadline
    judged: int  # of those requests, by a deadline that counts
    late: int  # of those judged
    outside: tuple[tuple[str, int], ...]  # requests outside what was seen, by how
    basis: Basis
    hits_known: bool  # whether the pool's prefix-hit ratio is; it is matched on with `PROMPT`
    told: str  # what it rests on, in words
    seen: int  # requests of the past that it rests on
    days: int  # in which these were received
    pooled: tuple[str, ...]  # dimensions given up to have enough
    missing: int  # requests that are missing to the first deadline


def held(
    learnt: Learnt, requests: pa.Table, seen: Matched, clock: str, by: Sequence[str]
) -> dict[tuple[str, ...], Held]:
    """Of each combination of `by`, by its values; none of a series that has not the clock."""
    value = numbers(requests.column(clock), np.nan)
    measured = np.flatnonzero((value >= 0) & counted(requests, clock))
    rows = requests.take(pa.array(measured))
    met = seen.of(measured)
    found = learnt.deadlines(rows, met, clock)
    names, own = series_of(rows, by)
    order = np.argsort(own, kind="stable")
    ends = np.cumsum(np.bincount(own, minlength=len(names)))
    parts = np.split(order, ends[: len(names) - 1]) if names and len(rows) else []
    told = _Told(rows, met, clock, found)
    return {name: told.of(part) for name, part in zip(names, parts, strict=False)}


class _Told:
    """The requests of one clock as columns."""

    def __init__(self, rows: pa.Table, met: Matched, clock: str, found: Deadlines) -> None:
        self._found, self._rate = found, met.rate_per_s
        self._weight = weights(rows)
        basis, tokens = basis_of(rows, clock)
        self._tokens = np.where(basis == BASES.index(Basis.RATE), np.nan, tokens)
        held_s = found.held_s
        self._judged = ~np.isnan(held_s)
        self._late = numbers(rows.column(clock), np.nan) > held_s

    def of(self, rows: I64) -> Held:
        found = self._found
        one = _usual(rows, found)
        line = found.lines[found.line[one]] if found.line[one] >= 0 else None
        outside = ((str(o.name).lower(), self._sum(rows, found.outside & o > 0)) for o in _BEYOND)
        return Held(
            requests=int(self._weight[rows].sum()),
            rate_per_s=_median(self._rate[rows]),
            tokens=_median(self._tokens[rows]),
            deadline_s=_median(found.deadline_s[rows]),
            judged=self._sum(rows, self._judged),
            late=self._sum(rows, self._late),
            outside=tuple((how, count) for how, count in outside if count),
            basis=BASES[found.basis[one]],
            hits_known=bool(found.hit[one] != UNTOLD_HITS),
            told=found.told(one),
            seen=line.count if line else 0,
            days=line.days if line else 0,
            pooled=found.pooled(one) if line else (),
            missing=int(found.missing[one]),
        )

    def _sum(self, rows: I64, chosen: np.ndarray) -> int:
        return int(self._weight[rows][chosen[rows]].sum())


def _usual(rows: I64, found: Deadlines) -> int:
    """The last of the requests that have the deadline that most have."""
    line = found.line[rows]
    kinds, count = np.unique(line, return_counts=True)
    return int(rows[np.flatnonzero(line == kinds[np.argmax(count)])[-1]])


def _median(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None
