"""The tail of this hour as it was on the days before, for every series at once.

1. The hour is centred on the same time of day, 24, 48 and 72 h back.
2. What alerted within such an hour is left out: it would hide today's incident behind that one.
3. A day with too few requests left tells no p99 and is left out too.
4. The baseline is the median of the days left; of two, their mean, as in Prometheus.
5. A series without any day is pooled with its like (`pooling`), and says so.

Pure: it sees the rollups it is given and `now_ns`. Give it the hours of the days (`hours`) and the
last one; older rows make "how much longer" more exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine import rollup
from tailburn.engine.baseline.incidents import Incident, rows_of, within
from tailburn.engine.baseline.load import DAY_NS, HOUR_NS
from tailburn.engine.baseline.pooling import keys_of, parents
from tailburn.engine.baseline.quantiles import Dense, accumulate, quantiles
from tailburn.engine.grouping import F64, I64, medians, numbers

DAYS: Final = 3
MINIMUM_COUNT: Final = 300  # with fewer, the 95 % upper bound of p99 lies above all of them
_SECOND_NS: Final = 1e9
Mask = NDArray[np.bool_]
_READ: Final = ("minute_ns", "count", "min_s", "max_s", "buckets", "counts")


class Day(IntEnum):
    """What became of one of the days before."""

    USED = 0
    THIN = 1  # fewer requests than it takes
    EXCLUDED = 2  # an incident, and what is left without it is too thin
    EMPTY = 3  # none was seen, but earlier ones were: a gap
    YOUNG = 4  # none was seen, and no earlier one


@dataclass(frozen=True)
class Baseline:
    """The baseline of one series, and what it rests on."""

    series: dict[str, str]
    value_s: float | None
    pooled: tuple[str, ...]  # dimensions given up to have enough; empty: the series' own
    days: tuple[tuple[Day, int, int, float | None], ...]  # state, requests, left out, value in s
    own_count: int  # requests of the series itself, all days, none left out
    day_reasons: tuple[tuple[str, ...], ...]  # of the incidents that each day left out
    needs_s: float | None  # until its own first baseline; None: it is not young, or too rare
    soonest_s: float | None  # until the first one of any level that has none yet

    @property
    def reasons(self) -> tuple[str, ...]:
        """Of the incidents within these hours."""
        return tuple(sorted({reason for day in self.day_reasons for reason in day}))

    def told(self) -> str:
        """In words: value, parent, days, and how much longer a young series takes."""
        shown = "; ".join(_told(ago, *day) for ago, day in enumerate(self.days, 1))
        if self.value_s is None:
            head = "no baseline: the SLO alone decides"
            if self.soonest_s is not None:
                head += f" for {self.soonest_s / 3600:.1f} h more"
        elif self.pooled:
            head = f"{self.value_s:.4g} s, of all {', '.join(self.pooled)} together, for its own "
            head += f"{self.own_count} requests are too few"
        else:
            head = f"{self.value_s:.4g} s"
        tail = (
            ""
            if self.needs_s is None or self.value_s is None
            else f"; its own takes {self.needs_s / 3600:.1f} h more"
        )
        why = f" (left out: {', '.join(self.reasons)})" if self.reasons else ""
        return f"{head}; {shown}{why}{tail}"


@dataclass(frozen=True)
class Baselines:
    """Of every series, as columns; `[series, day]` where two are named."""

    by: tuple[str, ...]
    series: pa.Table  # the columns `by`, as text
    levels: tuple[tuple[str, ...], ...]  # dimensions kept at each level
    level: I64  # which level was used, -1 where no level has a baseline
    value_s: F64  # nan: none
    day_value_s: F64  # [series, day] at the level used, or the last tried
    day_count: I64  # requests it rests on
    day_left_out: I64  # requests left out for an incident
    day_state: NDArray[np.int8]  # Day
    own_count: I64
    needs_s: F64  # nan: has its own, or at this rate never
    soonest_s: F64  # until a baseline of its own or of a parent that has none yet; nan: likewise
    groups: tuple[I64, ...]  # per level: the group of each series
    fired: tuple[tuple[tuple[str, Mask], ...], ...]  # per day: reason, and the series it was of

    def __len__(self) -> int:
        return len(self.value_s)

    def one(self, row: int) -> Baseline:
        """The baseline of one series."""
        names = {n: str(self.series.column(n)[row]) for n in self.by}
        used = int(self.level[row])
        kept = self.levels[used]
        days = tuple(
            (Day(int(state)), int(count), int(left_out), _known(value))
            for state, count, left_out, value in zip(
                self.day_state[row],
                self.day_count[row],
                self.day_left_out[row],
                self.day_value_s[row],
                strict=True,
            )
        )
        pooled = tuple(n for n in self.by if n not in kept) if used >= 0 else ()
        own = int(self.own_count[row])
        value, needs = _known(self.value_s[row]), _known(self.needs_s[row])
        soonest = _known(self.soonest_s[row])
        return Baseline(names, value, pooled, days, own, self._reasons(row), needs, soonest)

    def _reasons(self, row: int) -> tuple[tuple[str, ...], ...]:
        """Per day, of the incidents of any series that was pooled."""
        group = self.groups[self.level[row]]
        alike = group == group[row]
        return tuple(
            tuple(sorted({reason for reason, hit in day if (hit & alike).any()}))
            for day in self.fired
        )


def hours(now_ns: int, days: int = DAYS) -> list[tuple[int, int]]:
    """Start and end of the hour on each day before, in whole minutes, the last day first."""
    now = now_ns // rollup.MINUTE_NS * rollup.MINUTE_NS
    centres = [now - day * DAY_NS for day in range(1, days + 1)]
    return [(centre - HOUR_NS // 2, centre + HOUR_NS // 2) for centre in centres]


def same_hour(
    rollups: pa.Table,
    clock: str,
    by: Sequence[str],
    now_ns: int,
    incidents: Sequence[Incident] = (),
    days: int = DAYS,
    minimum: int = MINIMUM_COUNT,
    q: float = 0.99,
) -> Baselines:
    """The `q` quantile in s of `clock` for each series of `by` that `rollups` has any row of.

    `rollups` are as `engine.rollup` folds them. Raises `ValueError` for less than a day or one
    request, `KeyError` for an unknown dimension.
    """
    if days < 1 or minimum < 1:
        raise ValueError(f"want at least one day and one request, got {days} and {minimum}")
    needed = [*dict.fromkeys([*by, *(n for i in incidents for n in i.where)]), *_READ]
    needed = [name for name in needed if name in by or name in rollups.column_names]
    rows = rollups.select([*needed, "clock"]).filter(_is(rollups.column("clock"), clock))
    series, own = keys_of(rows, by)
    minute = rows.column("minute_ns").to_numpy()
    tree = parents(series, by)
    sums = [_Level.empty(group, size, days) for _, group, size in tree]
    spoke: list[tuple[tuple[str, Mask], ...]] = []
    for day, (since, until) in enumerate(hours(now_ns, days)):
        here = np.flatnonzero((minute >= since) & (minute < until))
        chosen, member = _at(rows, here), own[here]
        out = np.zeros(len(here), np.bool_)
        of_day = []
        for incident in within(incidents, since, until):
            rows_out = rows_of(incident, chosen)
            out |= rows_out
            of_day.append(
                (incident.reason, np.bincount(member[rows_out], minlength=len(series)) > 0)
            )
        spoke.append(tuple(of_day))
        count = numbers(chosen.column("count"), 0)
        lost = np.rint(np.bincount(member[out], count[out], len(series))).astype(np.int64)
        if out.any():
            chosen, member = chosen.filter(pa.array(~out)), member[~out]
        left = accumulate(chosen, member, len(series))
        for depth, level in enumerate(sums):
            level.take(day, left.grouped(level.group, level.size) if depth else left, lost, q)
    rate, first = _seen(rows, own, len(series), now_ns)
    found = [level.judged(rate, first, now_ns, minimum) for level in sums]
    return _chosen(tuple(by), series, tree, found, spoke)


@dataclass(frozen=True)
class _Judged:
    """One level, spread to its series."""

    value_s: F64
    day_value_s: F64
    count: I64
    left_out: I64
    state: NDArray[np.int8]
    needs_s: F64


@dataclass(frozen=True)
class _Level:
    """Sums of the groups of one level, `[group, day]`."""

    group: I64  # of each series
    size: int
    count: I64
    left_out: I64
    value_s: F64

    @classmethod
    def empty(cls, group: I64, size: int, days: int) -> "_Level":
        nothing = np.zeros((size, days), np.int64)
        return cls(group, size, nothing, nothing.copy(), np.full((size, days), np.nan))

    def take(self, day: int, left: Dense, lost: I64, q: float) -> None:
        self.count[:, day] = left.count
        np.add.at(self.left_out[:, day], self.group, lost)
        self.value_s[:, day] = quantiles(left, q)

    def judged(self, rate: F64, first: I64, now_ns: int, minimum: int) -> _Judged:
        """Which days count, their median, and how much longer a young group takes, in s."""
        days = self.count.shape[1]
        began = np.full(self.size, np.iinfo(np.int64).max)
        np.minimum.at(began, self.group, first)
        each_s = np.bincount(self.group, rate, self.size)
        ends = np.array([until for _, until in hours(now_ns, days)])
        starts = ends - HOUR_NS
        state = np.full((self.size, days), Day.USED, np.int8)
        state[self.count < minimum] = Day.THIN
        state[(self.count < minimum) & (self.left_out > 0)] = Day.EXCLUDED
        nothing = (self.count == 0) & (self.left_out == 0)
        state[nothing] = Day.EMPTY
        state[nothing & (began[:, None] >= ends)] = Day.YOUNG
        values = np.where(state == Day.USED, self.value_s, np.nan)
        young = (began > starts[0]) & ~(state == Day.USED).any(axis=1)
        with np.errstate(divide="ignore"):
            gather_s = minimum / each_s
        due_s = (began - now_ns + DAY_NS - HOUR_NS // 2) / _SECOND_NS + gather_s
        within_hour = gather_s <= HOUR_NS / _SECOND_NS
        needs = np.where(young & within_hour, np.maximum(due_s, 60.0), np.nan)
        spread = self.group
        return _Judged(
            medians(values)[spread],
            np.where(self.count > 0, self.value_s, np.nan)[spread],
            self.count[spread],
            self.left_out[spread],
            state[spread],
            needs[spread],
        )


def _chosen(
    by: tuple[str, ...],
    series: pa.Table,
    tree: Sequence[tuple[tuple[str, ...], I64, int]],
    found: Sequence[_Judged],
    fired: Sequence[tuple[tuple[str, Mask], ...]],
) -> Baselines:
    """The first level with a baseline, for each series; the last one where there is none."""
    has = np.array([~np.isnan(judged.value_s) for judged in found])
    level = np.where(has.any(axis=0), has.argmax(axis=0), -1)
    every = np.arange(len(series))
    return Baselines(
        by=by,
        series=series,
        levels=tuple(kept for kept, _, _ in tree),
        level=level,
        value_s=np.stack([j.value_s for j in found])[level, every],
        day_value_s=np.stack([j.day_value_s for j in found])[level, every],
        day_count=np.stack([j.count for j in found])[level, every],
        day_left_out=np.stack([j.left_out for j in found])[level, every],
        day_state=np.stack([j.state for j in found])[level, every],
        own_count=(found[0].count + found[0].left_out).sum(axis=1),
        needs_s=found[0].needs_s,
        soonest_s=np.fmin.reduce(np.stack([j.needs_s for j in found])),
        groups=tuple(group for _, group, _ in tree),
        fired=tuple(fired),
    )


def _seen(rows: pa.Table, own: I64, series: int, now_ns: int) -> tuple[F64, I64]:
    """Requests a second of the last hour, or since each series began; and when it began."""
    minute = rows.column("minute_ns").to_numpy()
    first = np.full(series, np.iinfo(np.int64).max)
    np.minimum.at(first, own, minute)
    now = now_ns // rollup.MINUTE_NS * rollup.MINUTE_NS
    recent = (minute >= now - HOUR_NS) & (minute < now)
    count = np.bincount(own[recent], numbers(rows.column("count"), 0)[recent], series)
    long_ns = np.clip(now - first, rollup.MINUTE_NS, HOUR_NS)
    return np.maximum(count, 0) * _SECOND_NS / long_ns, first


def _is(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    return pc.equal(column.cast(pa.string()), value)


def _at(rows: pa.Table, here: I64) -> pa.Table:
    """Rows by ascending positions; no copy where they lie together."""
    if len(here) and here[-1] - here[0] + 1 == len(here):
        return rows.slice(here[0], len(here))
    return rows.take(pa.array(here))


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _told(ago: int, state: Day, count: int, left_out: int, value_s: float | None) -> str:
    out = f", {left_out:,} left out for an incident" if left_out else ""
    if state == Day.USED:
        return f"{ago} d ago {value_s:.4g} s of {count:,} requests{out}"
    if state in (Day.THIN, Day.EXCLUDED):
        return f"{ago} d ago not used: {count:,} requests{out}"
    return f"{ago} d ago not used: {'no requests' if state == Day.EMPTY else 'it was not there'}"
