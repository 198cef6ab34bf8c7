"""When a request is late: 1.5 times the p99 of requests like it at the same load, over a week.

For each request to judge:
1. its series, or the first parent (`pooling`) with enough requests matched in the same way;
2. of these the prefix-hit ratio's tenth, where it is known and stands for cached tokens, or all
   if it is too thin; the service does not know it;
3. the arrival rates nearest to its own, until there are enough;
4. p99 by length of prompt, short ones joined until each group has enough, and the line through
   them; never below the quickest group's. A line that falls is taken for none.

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
from numpy.typing import NDArray

from tailburn.engine.baseline.line import Line, Past, fit
from tailburn.engine.baseline.load import (
    BASES,
    UNTOLD_HITS,
    Basis,
    Matched,
    basis_of,
    counted,
    rate_bin,
    token_bin,
)
from tailburn.engine.baseline.pooling import Series, levels, series_of
from tailburn.engine.grouping import F64, I64, distinct

Mask = NDArray[np.bool_]

FACTOR: Final = 1.5
MINIMUM_COUNT: Final = 300
SETTLED_DAYS: Final = 3
"""With the first and the last of them in part, at least a day went by."""
_NONE: Final = -1
_LIKE: Final = {
    Basis.UNCACHED: "arrival rate and uncached prompt tokens",
    Basis.PROMPT: "arrival rate, prompt tokens and prefix-hit ratio: the engine does not tell "
    "cached tokens",
    Basis.RATE: "arrival rate alone",
}
_HITS_UNTOLD: Final = (
    "arrival rate and prompt tokens: neither requests nor metrics tell what was cached"
)


class Outside(IntFlag):
    """How a request lies outside what was seen."""

    INSIDE = 0
    RATE_BELOW = 1
    RATE_ABOVE = 2
    TOKENS_BELOW = 4
    TOKENS_ABOVE = 8


ABOVE: Final = int(Outside.RATE_ABOVE | Outside.TOKENS_ABOVE)
"""Where a miss is no sign of a fault: more load, or a longer prompt, than was ever seen."""


@dataclass(frozen=True)
class Deadlines:
    """Of each request, as columns."""

    by: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    deadline_s: F64  # nan: none, for want of requests, load or a clock
    outside: I64  # Outside
    basis: I64  # number in `load.BASES`
    level: I64  # of `levels`; -1: none
    line: I64  # of `lines`; -1: none
    lines: Sequence[Line]
    hit: I64  # tenth of the prefix-hit ratio; -1: not known
    missing: I64  # requests that are still missing to the first deadline; 0 where there is one

    @property
    def held_s(self) -> F64:
        """Deadlines that count: not above what was seen, and not those of other models."""
        of_model = np.array(["model" not in self.by or "model" in kept for kept in self.levels])
        counts = of_model[self.level] & (self.outside & ABOVE == 0)
        return np.where(counts, self.deadline_s, np.nan)

    @property
    def settled(self) -> Mask:
        """Which rest on enough days that what comes later can be told from them."""
        days = np.array([*(line.days for line in self.lines), 0])
        return days[self.line] >= SETTLED_DAYS

    def pooled(self, row: int) -> tuple[str, ...]:
        """The dimensions given up to have enough."""
        kept = self.levels[self.level[row]]
        return tuple(name for name in self.by if name not in kept)

    def told(self, row: int) -> str:
        """What the deadline of a request rests on, in words."""
        if self.line[row] < 0:
            more = f"{self.missing[row]:,} more requests like it are needed"
            return f"no deadline: {more if self.missing[row] else 'its load or clock is unknown'}"
        line, basis = self.lines[self.line[row]], BASES[self.basis[row]]
        like = _LIKE[basis]
        if basis == Basis.PROMPT and self.hit[row] == UNTOLD_HITS:
            like = _HITS_UNTOLD
        elif basis == Basis.PROMPT and line.all_hits:
            like += ", and this ratio is too rare to match on"
        given_up = self.pooled(row)
        pooled = f", of all {', '.join(given_up)} together" if given_up else ""
        beyond = Outside(int(self.outside[row]))
        flag = f"; outside what was seen: {_beyond(beyond)}" if beyond else ""
        days = f"{line.days} day{'s' if line.days > 1 else ''}"
        return (
            f"{self.deadline_s[row]:.4g} s, from {line.count:,} requests of {days} "
            f"by {like}{pooled}{flag}"
        )


class Learnt:
    """What was learnt, with each line fitted once, when it is first asked for."""

    def __init__(
        self,
        cells: pa.Table,
        by: Sequence[str],
        minimum: int = MINIMUM_COUNT,
        factor: float = FACTOR,
    ) -> None:
        """Raises `ValueError` for a factor not above 0 or less than one request."""
        if not factor > 0 or minimum < 1:
            raise ValueError(f"want a factor above 0 and one request, got {factor} and {minimum}")
        self.by, self.levels = tuple(by), tuple(levels(by))
        self._minimum, self._factor = minimum, factor
        self._cells = cells.filter(pc.invert(cells.column("left_out")))
        self._clocks: dict[str, _OfClock] = {}
        self._measured = set(pc.unique(self._cells.column("clock").cast(pa.string())).to_pylist())

    def knows(self, clock: str) -> bool:
        """Whether anything was learnt of a clock."""
        return clock in self._measured

    def deadlines(
        self, requests: pa.Table, seen: Matched, clock: str, series: Series | None = None
    ) -> Deadlines:
        """The deadline of each request for `clock`; `series` is theirs, where it is known."""
        if clock not in self._clocks:
            same = pc.equal(self._cells.column("clock").cast(pa.string()), clock)
            cells = self._cells.filter(same)
            self._clocks[clock] = _OfClock(cells, self.by, self.levels, self._minimum)
        found = self._clocks[clock]
        basis, tokens = basis_of(requests, clock)
        known = ~np.isnan(seen.rate_per_s) & counted(requests, clock)
        rate = np.zeros(len(requests), np.int64)
        rate[known] = rate_bin(seen.rate_per_s[known])
        names, own = series or series_of(requests, self.by)
        asked, which = _distinct(own[known], basis[known], seen.hit_bin[known], rate[known])
        answers = np.array(
            [found.answer(names[one], *like) for one, *like in asked.tolist()], np.int64
        ).reshape(-1, 4)
        level, line, missing, outside = (np.zeros(len(requests), np.int64) for _ in range(4))
        level[:], line[:] = _NONE, _NONE
        for column, values in zip((level, line, missing, outside), answers.T, strict=True):
            column[known] = values[which]
        deadline = np.full(len(requests), np.nan)
        length = token_bin(tokens)
        base, slope, floor, low, high = found.coefficients().T
        at = np.flatnonzero(line >= 0)
        of = line[at]
        deadline[at] = self._factor * np.maximum(base[of] + slope[of] * tokens[at], floor[of])
        outside[at] |= np.where(length[at] < low[of], int(Outside.TOKENS_BELOW), 0)
        outside[at] |= np.where(length[at] > high[of], int(Outside.TOKENS_ABOVE), 0)
        return Deadlines(
            self.by,
            self.levels,
            deadline,
            outside,
            basis,
            level,
            line,
            found.lines,
            seen.hit_bin,
            missing,
        )


_Answer = tuple[int, int, int, int]
"""Level, number of the line, requests missing where there is none, and `Outside`."""


class _OfClock:
    """The cells of one clock, found by series at each level, and the lines fitted so far."""

    def __init__(
        self,
        cells: pa.Table,
        by: tuple[str, ...],
        levels: Sequence[tuple[str, ...]],
        minimum: int,
    ) -> None:
        self.past = Past.of(cells)
        self.lines: list[Line] = []
        self._minimum = minimum
        self._kept = [[by.index(name) for name in kept] for kept in levels]
        self._groups: list[dict[tuple[str, ...], I64]] = []
        for kept in levels:
            named, group = series_of(cells, kept)
            order = np.argsort(group, kind="stable")
            ends = np.cumsum(np.bincount(group, minlength=len(named)))
            self._groups.append(dict(zip(named, np.split(order, ends)[: len(named)], strict=True)))
        self._answers: dict[tuple[tuple[str, ...], int, int, int], _Answer] = {}
        self._known: dict[tuple[int, tuple[str, ...], int, int, int], int] = {}
        self._alike: dict[tuple[int, tuple[str, ...], int], tuple[I64, int, int, int]] = {}

    def coefficients(self) -> F64:
        """Base, slope, floor, shortest and longest bin of each line."""
        rows = [(x.base_s, x.per_token_s, x.floor_s, *x.token_bins) for x in self.lines]
        return np.array(rows, np.float64).reshape(-1, 5)

    def answer(self, series: tuple[str, ...], basis: int, hit: int, rate: int) -> _Answer:
        """What is known of requests that are asked alike."""
        asked = (series, basis, hit, rate)
        if asked not in self._answers:
            self._answers[asked] = self._answer(*asked)
        return self._answers[asked]

    def _answer(self, series: tuple[str, ...], basis: int, hit: int, rate: int) -> _Answer:
        best = 0
        for level, kept in enumerate(self._kept):
            values = tuple(series[place] for place in kept)
            cells, count, slowest, busiest = self._cells_alike(level, values, basis)
            best = max(best, count)
            if count < self._minimum:
                continue
            key = (level, values, basis, hit, rate)
            if key not in self._known:
                self.lines.append(fit(self.past, cells, basis, hit, rate, self._minimum))
                self._known[key] = len(self.lines) - 1
            outside = Outside.RATE_ABOVE if rate > busiest else Outside.INSIDE
            outside |= Outside.RATE_BELOW if rate < slowest else Outside.INSIDE
            return level, self._known[key], 0, int(outside)
        return _NONE, _NONE, self._minimum - best, 0

    def _cells_alike(
        self, level: int, values: tuple[str, ...], basis: int
    ) -> tuple[I64, int, int, int]:
        """Cells of a group that are matched in the same way, requests in them, and their rates."""
        key = (level, values, basis)
        if key not in self._alike:
            cells = self._groups[level].get(values, np.zeros(0, np.int64))
            cells = cells[self.past.basis[cells] == basis]
            rates = self.past.rate[cells]
            ends = (int(rates.min()), int(rates.max())) if len(rates) else (0, 0)
            self._alike[key] = (cells, int(self.past.count[cells].sum()), *ends)
        return self._alike[key]


def _distinct(*columns: I64) -> tuple[I64, I64]:
    """Distinct rows of some columns, and which of them each row is."""
    if len(columns[0]) == 0:
        return np.zeros((0, len(columns)), np.int64), np.zeros(0, np.int64)
    keys, group = distinct([pa.chunked_array([pa.array(c)]) for c in columns])
    return np.stack([key.to_numpy() for key in keys], axis=1), group


def _beyond(outside: Outside) -> str:
    return " and ".join(str(one.name).lower().replace("_", " ") for one in outside)
