"""Exposed buckets of every clock that an alert reads, and p99 of each hour of three days.

What the recorded rules say of them: five minutes are a sum, an hour is the mean of the rates over
five minutes sampled each four, and a percentile is known from its least number of requests on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.evaluation.coverage import NEVER, Coverage
from tailburn.engine.evaluation.quantiles import BOUND_STEP, EXPOSED, quantiles
from tailburn.engine.evaluation.rings import Ring
from tailburn.engine.evaluation.windows import (
    DAY_S,
    FROZEN_AT_MOST_S,
    HOUR_S,
    LOOKED_FOR_S,
    MINUTE_NS,
    MINUTE_S,
    SAMPLED_S,
    SLOW_S,
)
from tailburn.engine.grouping import F64, I64, single_chunk
from tailburn.engine.slo.model import QUANTILES, Clock, Slo
from tailburn.engine.slo.verdicts import Requests, clock_column, groups_of

_SAMPLED: Final = SAMPLED_S // MINUTE_S
_SLOW: Final = SLOW_S // MINUTE_S
_HOUR: Final = HOUR_S // MINUTE_S
_DAY: Final = DAY_S // MINUTE_S
_P99: Final = QUANTILES["p99"]
_LOOKED_FOR: Final = LOOKED_FOR_S // MINUTE_S
_SPARE: Final = 10

Tail = tuple[str, Clock]
"""A clock of an SLO."""


@dataclass(frozen=True)
class Read:
    """What is read of a clock of an SLO, and how many days its hours are kept."""

    slo: Slo
    clock: Clock
    days: int = 0
    least: int = 0  # requests of an hour from which on its p99 is kept


@dataclass
class Cells:
    """The series of a clock of an SLO, by the values of its `by`."""

    by: list[tuple[str, ...]] = field(default_factory=list)
    columns: I64 = field(default_factory=lambda: np.zeros(0, np.int64))


class Buckets:
    """Rows of ROLLUPS, folded to what `reads` names. Times are minutes since the epoch.

    `recalled_s`: how long ago somebody asks for `recent` again; an hour at least.
    """

    def __init__(self, reads: Iterable[Read], cover: Coverage, recalled_s: int = 0) -> None:
        self._reads = {(read.slo.name, read.clock): read for read in reads}
        self._cover = cover
        reach = max(_HOUR, recalled_s // MINUTE_S)
        self._minutes = Ring(reach + _SAMPLED + _SPARE, EXPOSED)
        self._came = Ring(FROZEN_AT_MOST_S // MINUTE_S + _HOUR + _SAMPLED + _SPARE)
        days = max((read.days for read in self._reads.values()), default=0)
        self._hours = _Hours(days * _DAY) if days else None
        self._cells: dict[Tail, Cells] = {tail: Cells() for tail in self._reads}
        self._columns: dict[tuple[Tail, tuple[str, ...]], int] = {}
        self.births: I64 = np.zeros(0, np.int64)

    @property
    def clocks(self) -> frozenset[str]:
        """The `clock` of the rows that are read."""
        return frozenset(clock_column(r.clock, r.slo.vantage) for r in self._reads.values())

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What tells the rows that are read from others, in order."""
        found = {name for r in self._reads.values() for name in (*r.slo.select, *r.slo.by)}
        return tuple(sorted(found))

    @property
    def reach(self) -> int:
        """How many minutes back rows matter; 0 where nothing is read."""
        if not self._reads:
            return 0
        days = max(read.days for read in self._reads.values())
        return max(days * _DAY, FROZEN_AT_MOST_S // MINUTE_S) + _HOUR + _SAMPLED + _SPARE

    def cells(self, tail: Tail) -> Cells:
        """The series of a clock."""
        return self._cells.get(tail) or Cells()

    def take(self, rows: pa.Table) -> None:
        """Rows of ROLLUPS; those of other clocks are left out."""
        if not self._reads or not len(rows):
            return
        known = pa.array(sorted(self.clocks))
        rows = rows.filter(pc.is_in(rows.column("clock").cast(pa.string()), value_set=known))
        if not len(rows):
            return
        requests, exposed = Requests(rows), _exposed(rows)
        minute = rows.column("minute_ns").to_numpy() // MINUTE_NS
        for tail, read in self._reads.items():
            wanted = dict(read.slo.select) | {"clock": clock_column(read.clock, read.slo.vantage)}
            row = np.flatnonzero(requests.all_equal(wanted))
            if len(row):
                values, group = groups_of(
                    rows.select([*read.slo.by, "minute_ns"]).take(row), read.slo.by
                )
                column = np.array([self._column(tail, one) for one in values])[group]
                np.minimum.at(self.births, column, minute[row])
                self._minutes.add(minute[row], column, exposed[row])
                self._came.add(minute[row], column, exposed[row].sum(axis=1))

    def recent(self, now: int) -> I64:
        """Exposed buckets of the last five minutes: (series, EXPOSED)."""
        return self._minutes.total(now - _SAMPLED, now - 1)

    def hour(self, now: int) -> tuple[I64, F64]:
        """Exposed buckets of the last hour, as the sum of its samples; and what came in it.

        `now` is a multiple of four minutes. Each sample looks back five, so that some minutes
        count twice.
        """
        last = now // _SLOW
        first = last - _HOUR // _SLOW
        total = np.zeros((self._minutes.width, EXPOSED), np.int64)
        for step in range(first, last + 1):
            total += self._minutes.total(step * _SLOW - _SAMPLED, step * _SLOW - 1)
        count = self._cover.sampled(now - _HOUR, now, self.births)
        scale = np.divide(_HOUR, count * _SAMPLED, out=np.zeros(len(count)), where=count > 0)
        return total, total.sum(axis=1) * scale

    def record(self, now: int) -> None:
        """Keep p99 of the hour that ends now, where it is known, at a multiple of four minutes."""
        if self._hours is None or now % _SLOW or not len(self.births):
            return
        total, came = self.hour(now)
        least = np.zeros(len(came))
        for tail, read in self._reads.items():
            least[self._cells[tail].columns] = read.least if read.days else np.inf
        kept = came >= np.maximum(least, 1)
        p99 = np.full(len(came), np.nan)
        p99[kept] = quantiles(total[kept], _P99)
        self._hours.put(now // _SLOW, p99)

    def day_before(self, column: I64, now: int, day: int) -> F64:
        """p99 of this hour so many days before, as it was last recorded; nan: not known."""
        assert self._hours is not None, "days are kept for a clock that is compared with them"
        ago = now - day * _DAY + _HOUR // 2
        return self._hours.last(column, -(-(ago - _LOOKED_FOR) // _SLOW), ago // _SLOW)

    def came(self, column: int, first: int, last: int) -> I64:
        """Requests of the five minutes before each of these minutes, both included."""
        each = np.concatenate([[0], self._came.column(column, first - _SAMPLED, last - 1)])
        total = np.cumsum(each)
        return total[_SAMPLED:] - total[:-_SAMPLED]

    def came_in_hours(self, column: int, first: int, last: int) -> tuple[I64, F64]:
        """The multiples of four minutes in between, and what came in the hour before each."""
        marks = np.arange(-(-first // _SLOW), last // _SLOW + 1) * _SLOW
        each = self.came(column, int(marks[0]) - _HOUR, int(marks[-1]))[::_SLOW]
        total = np.convolve(each, np.ones(_HOUR // _SLOW + 1), "valid")
        birth = self.births[[column]]
        count = [int(self._cover.sampled(m - _HOUR, m, birth)[0]) for m in marks.tolist()]
        return marks, total * _HOUR / (np.maximum(count, 1) * _SAMPLED)

    def _column(self, tail: Tail, values: tuple[str, ...]) -> int:
        found = self._columns.get((tail, values))
        if found is None:
            found = self._columns[tail, values] = len(self._columns)
            cells = self._cells[tail]
            cells.by.append(values)
            cells.columns = np.append(cells.columns, found)
            self.births = np.append(self.births, NEVER)
            self._minutes.widen(found + 1)
            self._came.widen(found + 1)
        return found


class _Hours:
    """p99 in s of each hour, a row for each four minutes of some days."""

    def __init__(self, minutes: int) -> None:
        depth = minutes // _SLOW + _SPARE
        self._at: I64 = np.full(depth, -1)
        self._p99 = np.full((depth, 0), np.nan, np.float32)

    def put(self, step: int, p99: F64) -> None:
        row = step % len(self._at)
        if step < self._at[row]:
            return
        lacking = len(p99) - self._p99.shape[1]
        if lacking > 0:
            wider = np.full((len(self._at), lacking + len(p99)), np.nan, np.float32)
            self._p99 = np.concatenate([self._p99, wider], axis=1)
        self._at[row] = step
        self._p99[row] = np.nan
        self._p99[row, : len(p99)] = p99

    def last(self, columns: I64, first: int, last: int) -> F64:
        """The last value of these steps, both included, in each column."""
        found = np.full(len(columns), np.nan)
        held = columns < self._p99.shape[1]
        for step in range(first, last + 1):
            row = step % len(self._at)
            if self._at[row] == step:
                p99 = self._p99[row, columns[held]]
                found[held] = np.where(np.isnan(p99), found[held], p99)
        return found


def _exposed(rows: pa.Table) -> I64:
    """The buckets of each row as they are exposed: (rows, EXPOSED)."""
    lists = single_chunk(rows.column("buckets"))
    offsets = lists.offsets.to_numpy().astype(np.int64)
    bucket = lists.values.to_numpy()[offsets[0] : offsets[-1]] // BOUND_STEP
    counted = single_chunk(rows.column("counts"))
    ends = counted.offsets.to_numpy()
    amounts = counted.values.to_numpy()[ends[0] : ends[-1]]
    cell = np.repeat(np.arange(len(rows)), np.diff(offsets)) * EXPOSED + bucket
    found = np.zeros(len(rows) * EXPOSED, np.int64)
    np.add.at(found, cell, amounts)
    return found.reshape(len(rows), EXPOSED)
