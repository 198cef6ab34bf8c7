"""All alerts of SLOs evaluated minute by minute over a time that is past, as the service would."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.app.incidents import Incidents
from tailburn.app.planning.stored import Span
from tailburn.app.terminal.output import stderr
from tailburn.app.wind_tunnel.bar import far_bar
from tailburn.engine.backtest.fired import Fired, fired
from tailburn.engine.evaluation import AlertKey, Flip, State, evaluate, history_of
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import ROLLUPS
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import watches_of

_PART_NS: Final = 6 * 60 * MINUTE_NS
_TRIM_EVERY: Final = 60
Rollups = Callable[[int, int, Sequence[str]], pa.Table]
"""ROLLUPS of some clocks from a time (ns) until another."""
InFlight = Callable[[int, int], Mapping[int, Mapping[tuple[str, ...], float]]]
"""Requests in flight after a time until another: by time, then by the values of `by`."""


def no_rollups(since_ns: int, until_ns: int, clocks: Sequence[str]) -> pa.Table:
    """Where nothing is kept but counts: alerts on percentiles are not judged."""
    return ROLLUPS.empty_table()


@dataclass(frozen=True)
class Read:
    """How the counters of one SLO were read by somebody who kept them.

    Minutes at which they weren't are evaluated too, as the rules are: alerts that fire are frozen
    for some hours, and that nothing is known is an alert of its own.
    """

    points_ns: frozenset[int]  # the whole minutes at which they were
    across: pa.Table  # VERDICTS: what came from a minute until they were read again
    across_until_ns: I64  # when that was, of each of these rows, rising
    in_flight: InFlight
    not_counted: frozenset[str] = frozenset()  # budgets of which there is no counter


@dataclass(frozen=True)
class Past:
    """What is known of a time: VERDICTS, percentiles by minute, and the holes in both."""

    verdicts: pa.Table
    rollups: Rollups
    since_ns: int
    until_ns: int
    holes: tuple[Span, ...] = ()
    warm_ns: int = 0  # so much of its begin is looked back to and not judged itself
    read: Read | None = None  # of one SLO; None: the service's own tables


def replay(
    slos: Sequence[Slo], past: Past, doing: str, kinds: Collection[Kind] = tuple(Kind)
) -> tuple[Fired, ...]:
    """What would have fired, in order of time; what still does at the end has none.

    `doing`: told to whoever waits; "" to nobody. `kinds`: the alerts that are of interest.
    """
    run = _Run(slos, past, kinds)
    steps = range(past.since_ns, past.until_ns, _PART_NS)
    with far_bar(stderr(), hidden=not doing) as bar:
        task = bar.add_task(doing, total=len(steps), far="")
        for begin in steps:
            end = min(begin + _PART_NS, past.until_ns)
            run.go(begin, end)
            bar.update(task, advance=1, far=f"{(end - past.since_ns) / _PART_NS / 4:,.1f} d")
    judged_ns = past.since_ns + past.warm_ns
    return tuple(one for one in fired(run.flips) if (one.end_ns or past.until_ns) > judged_ns)


@dataclass
class _Run:
    slos: Sequence[Slo]
    past: Past
    kinds: Collection[Kind]
    flips: list[Flip] = field(default_factory=list)
    _states: dict[AlertKey, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        read = self.past.read
        self._watches = [w for w in watches_of(self.slos) if w.key.alertname in self.kinds]
        if read is not None:
            self._watches = [w for w in self._watches if w.key.objective not in read.not_counted]
        self._history = history_of(self._watches)
        self._incidents = Incidents((), {})
        self._verdicts = self.past.verdicts.sort_by("minute_ns")
        self._minutes = self._verdicts["minute_ns"].to_numpy()
        if read is not None and self.past.since_ns in read.points_ns:
            self._history.know(self.past.since_ns)

    def go(self, begin_ns: int, end_ns: int) -> None:
        """Evaluate at the end of each minute of a stretch."""
        clocks = sorted(self._history.buckets.clocks)
        rollups = self.past.rollups(begin_ns, end_ns, clocks).sort_by("minute_ns")
        rolled = rollups["minute_ns"].to_numpy()
        read = self.past.read
        in_flight = {} if read is None else read.in_flight(begin_ns, end_ns)
        for minute in range(begin_ns, end_ns, MINUTE_NS):
            after = minute + MINUTE_NS
            if read is not None:
                self._hear(read, after)
                if after in in_flight:
                    self._history.take_in_flight(self.slos[0].name, after, in_flight[after])
            elif any(first <= minute < last for first, last in self.past.holes):
                continue
            else:
                self._history.cover(minute, after)
            for rows, times, take in (
                (self._verdicts, self._minutes, self._history.take_verdicts),
                (rollups, rolled, self._history.take_rollups),
            ):
                first, last = np.searchsorted(times, [minute, after])
                if last > first:
                    take(rows.slice(first, last - first))
            self._evaluate(after)

    def _hear(self, read: Read, now_ns: int) -> None:
        """That the counters were read, and what had come since they were before."""
        if now_ns in read.points_ns:
            self._history.know(now_ns)
        first, last = np.searchsorted(read.across_until_ns, [now_ns, now_ns + MINUTE_NS])
        if last > first:
            rows = read.across.slice(first, last - first)
            self._history.take_across(rows, read.across_until_ns[first:last])

    def _evaluate(self, now_ns: int) -> None:
        incidents = self._incidents.all()
        self._states, flips = evaluate(
            self._watches, self._history, self._states, incidents, now_ns
        )
        self._incidents.take(flips)
        self.flips += flips
        if now_ns // MINUTE_NS % _TRIM_EVERY == 0:
            self._history.trim(now_ns)
            self._incidents.trim(now_ns)
