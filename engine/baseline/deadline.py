"""When a request is late: 1.5 times the p99 of requests like it at the same load, over 7 days.

For each request to judge:
1. its series, or the first parent (`pooling`) with enough requests matched in the same way;
2. of these the prefix-hit ratio's tenth, where that is matched on, or all if it is too thin;
3. the arrival rates nearest to its own, until there are enough;
4. p99 by length of prompt, short ones joined until each group has enough, and the line through
   them; never below the quickest group's. A line that falls is taken for none.

Only hours that have ended count, and none in which an incident of the series fired.
A load or a length beyond what was seen is said to be outside, with the nearest one's deadline:
there a miss may be the load's fault and a hit luck.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.baseline import load as loaded
from tailburn.engine.baseline.incidents import Incident, rows_of
from tailburn.engine.baseline.line import Line, Past, fit
from tailburn.engine.baseline.load import HOUR_NS, KEPT_NS, Basis
from tailburn.engine.baseline.pooling import keys_of, levels
from tailburn.engine.baseline.quantiles import accumulate
from tailburn.engine.grouping import F64, I64, distinct, stacked_text
from tailburn.engine.names import UNKNOWN

FACTOR: Final = 1.5
MINIMUM_COUNT: Final = 300


class Outside(IntFlag):
    """How a request lies outside what was seen."""

    INSIDE = 0
    RATE_BELOW = 1
    RATE_ABOVE = 2
    TOKENS_BELOW = 4
    TOKENS_ABOVE = 8


@dataclass(frozen=True)
class Deadlines:
    """Of each request, as columns."""

    by: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    deadline_s: F64  # nan: none, for want of requests, load or a clock
    outside: I64  # Outside
    basis: np.ndarray  # Basis, as text
    level: I64  # of `levels`; -1: none
    line: I64  # of `lines`; -1: none
    lines: tuple[Line, ...]
    missing: I64  # requests that are still missing to the first deadline; 0 where there is one

    def told(self, row: int) -> str:
        """What the deadline of a request rests on, in words."""
        if self.line[row] < 0:
            more = f"{self.missing[row]:,} more requests like it are needed"
            return f"no deadline: {more if self.missing[row] else 'its load or clock is unknown'}"
        line = self.lines[self.line[row]]
        like = {
            Basis.UNCACHED: "arrival rate and uncached prompt tokens",
            Basis.PROMPT: "arrival rate, prompt tokens and prefix-hit ratio: the engine does not "
            "tell cached tokens",
            Basis.RATE: "arrival rate alone",
        }[Basis(self.basis[row])]
        if line.all_hits and self.basis[row] == Basis.PROMPT:
            like += ", and this ratio is too rare to match on"
        kept = self.levels[self.level[row]]
        given_up = ", ".join(name for name in self.by if name not in kept)
        pooled = f", of all {given_up} together" if given_up else ""
        beyond = Outside(int(self.outside[row]))
        flag = f"; outside what was seen: {_beyond(beyond)}" if beyond else ""
        return (
            f"{self.deadline_s[row]:.4g} s, from {line.count:,} requests of {line.hours} h "
            f"by {like}{pooled}{flag}"
        )


def deadlines(
    cells: pa.Table,
    requests: pa.Table,
    load: pa.Table,
    by: Sequence[str],
    clock: str,
    now_ns: int,
    incidents: Sequence[Incident] = (),
    factor: float = FACTOR,
    minimum: int = MINIMUM_COUNT,
) -> Deadlines:
    """The deadline of each request for `clock`, from what `load.fold` learnt.

    Raises `ValueError` for a factor not above 0 or less than one request, `KeyError` for an
    unknown dimension.
    """
    if not factor > 0 or minimum < 1:
        raise ValueError(f"want a factor above 0 and one request, got {factor} and {minimum}")
    past = _usable(cells, clock, now_ns, incidents)
    seen = loaded.matched(requests, load, by)
    basis, tokens = loaded.basis_of(requests, clock)
    known = ~np.isnan(seen.rate_per_s) & loaded.counted(requests, clock)
    rate = np.zeros(len(requests), np.int64)
    rate[known] = loaded.rate_bin(seen.rate_per_s[known])
    length = loaded.token_bin(tokens)
    tree = levels(by)
    found = _Found(past, tree, [_joined(past.cells, requests, kept) for kept in tree], minimum)
    size = len(requests)
    line, level, missing = np.full(size, -1), np.full(size, -1), np.zeros(size, np.int64)
    deadline, outside = np.full(size, np.nan), np.zeros(size, np.int64)
    asked = np.flatnonzero(known)
    whole = _distinct_of(found.groups[0][1][asked], basis[asked], seen.hit_bin[asked], rate[asked])
    for rows in (asked[part] for part in whole):
        first = int(rows[0])
        at, number, lacking = found.line(first, basis[first], int(seen.hit_bin[first]), rate[first])
        line[rows], level[rows], missing[rows] = number, at, lacking
        if number < 0:
            continue
        fitted = found.lines[number]
        deadline[rows] = factor * fitted.p99_s(tokens[rows])
        outside[rows] = found.rate_outside(first, at, basis[first], int(rate[first]))
        low, high = fitted.token_bins
        outside[rows] |= np.where(length[rows] < low, int(Outside.TOKENS_BELOW), 0)
        outside[rows] |= np.where(length[rows] > high, int(Outside.TOKENS_ABOVE), 0)
    return Deadlines(
        tuple(by), tuple(tree), deadline, outside, basis, level, line, tuple(found.lines), missing
    )


def _usable(cells: pa.Table, clock: str, now_ns: int, incidents: Sequence[Incident]) -> Past:
    """Cells of the clock, of hours that ended within 7 days, without those of incidents."""
    hour = cells.column("hour_ns").to_numpy()
    keep = (hour >= now_ns - KEPT_NS) & (hour + HOUR_NS <= now_ns)
    keep &= cells.column("count").to_numpy() > 0
    keep &= pc.equal(cells.column("clock").cast(pa.string()), clock).to_numpy()
    for incident in incidents:
        fired = incident.overlaps(hour, hour + HOUR_NS)
        if fired.any():
            keep &= ~(fired & rows_of(incident, cells))
    left = cells.filter(pa.array(keep))
    return Past(
        left,
        accumulate(left, np.arange(len(left)), len(left)),
        np.array(left.column("basis").to_pylist(), object),
        left.column("hit_bin").to_numpy(),
        left.column("rate_bin").to_numpy(),
        left.column("token_bin").to_numpy(),
        left.column("tokens").to_numpy(),
        left.column("hour_ns").to_numpy(),
    )


class _Found:
    """Lines already fitted, each once."""

    def __init__(
        self,
        past: Past,
        tree: Sequence[tuple[str, ...]],
        groups: Sequence[tuple[I64, I64]],
        minimum: int,
    ) -> None:
        self.past, self.tree, self.groups, self.minimum = past, tree, groups, minimum
        self.lines: list[Line] = []
        self._known: dict[tuple[int, int, str, int, int], int] = {}

    def alike(self, row: int, level: int, basis: str) -> I64:
        """The cells of a request's group at a level that are matched in the same way."""
        cells, requests = self.groups[level]
        return np.flatnonzero((cells == requests[row]) & (self.past.basis == basis))

    def rate_outside(self, row: int, level: int, basis: str, rate: int) -> int:
        """Whether such a rate was ever seen."""
        seen = self.past.rate[self.alike(row, level, basis)]
        above = Outside.RATE_ABOVE if rate > seen.max() else 0
        return int(above or (Outside.RATE_BELOW if rate < seen.min() else 0))

    def line(self, row: int, basis: str, hit: int, rate: int) -> tuple[int, int, int]:
        """Level, number of the line, and requests missing where there is none."""
        best = 0
        for level in range(len(self.tree)):
            cells = self.alike(row, level, basis)
            count = int(self.past.dense.count[cells].sum())
            best = max(best, count)
            if count >= self.minimum:
                key = (level, int(self.groups[level][1][row]), basis, hit, int(rate))
                if key not in self._known:
                    self.lines.append(fit(self.past, cells, basis, hit, rate, self.minimum))
                    self._known[key] = len(self.lines) - 1
                return level, self._known[key], 0
        return -1, -1, self.minimum - best


def _joined(cells: pa.Table, requests: pa.Table, kept: Sequence[str]) -> tuple[I64, I64]:
    """The group of each cell and of each request, over the dimensions kept."""
    if not kept:
        return np.zeros(len(cells), np.int64), np.zeros(len(requests), np.int64)
    both = pa.table({name: stacked_text((cells, requests), name, UNKNOWN) for name in kept})
    _, group = keys_of(both, kept)
    return group[: len(cells)], group[len(cells) :]


def _distinct_of(series: I64, basis: np.ndarray, hit: I64, rate: I64) -> list[I64]:
    """Positions of requests that are asked alike."""
    if len(series) == 0:
        return []
    columns = [pa.chunked_array([pa.array(c)]) for c in (series, hit, rate)]
    columns.append(pa.chunked_array([pa.array(basis, pa.string())]).dictionary_encode())
    _, group = distinct(columns)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group))[:-1])


def _beyond(outside: Outside) -> str:
    return " and ".join(str(one.name).lower().replace("_", " ") for one in outside)
