"""All alerts of SLOs evaluated minute by minute over a time that is past, as the service would."""

from collections.abc import Callable, Sequence
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
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import ROLLUPS
from tailburn.engine.slo.model import Slo
from tailburn.rules.ruleset import watches_of

_PART_NS: Final = 6 * 60 * MINUTE_NS
_TRIM_EVERY: Final = 60
Rollups = Callable[[int, int, Sequence[str]], pa.Table]
"""ROLLUPS of some clocks from a time (ns) until another."""


def no_rollups(since_ns: int, until_ns: int, clocks: Sequence[str]) -> pa.Table:
    """Where nothing is kept but counts: alerts on percentiles are not judged."""
    return ROLLUPS.empty_table()


@dataclass(frozen=True)
class Past:
    """What is known of a time: VERDICTS, percentiles by minute, and the holes in both."""

    verdicts: pa.Table
    rollups: Rollups
    since_ns: int
    until_ns: int
    holes: tuple[Span, ...] = ()
    warm_ns: int = 0  # so much of its begin is looked back to and not judged itself


def replay(slos: Sequence[Slo], past: Past, doing: str) -> tuple[Fired, ...]:
    """What would have fired, in order of time; what still does at the end has none."""
    run = _Run(slos, past)
    steps = range(past.since_ns, past.until_ns, _PART_NS)
    with far_bar(stderr()) as bar:
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
    flips: list[Flip] = field(default_factory=list)
    _states: dict[AlertKey, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._watches = watches_of(self.slos)
        self._history = history_of(self._watches)
        self._incidents = Incidents((), {})
        self._verdicts = self.past.verdicts.sort_by("minute_ns")
        self._minutes = self._verdicts["minute_ns"].to_numpy()

    def go(self, begin_ns: int, end_ns: int) -> None:
        """Evaluate at the end of each minute of a stretch."""
        clocks = sorted(self._history.buckets.clocks)
        rollups = self.past.rollups(begin_ns, end_ns, clocks).sort_by("minute_ns")
        rolled = rollups["minute_ns"].to_numpy()
        for minute in range(begin_ns, end_ns, MINUTE_NS):
            if any(first <= minute < last for first, last in self.past.holes):
                continue
            after = minute + MINUTE_NS
            self._history.cover(minute, after)
            for rows, times, take in (
                (self._verdicts, self._minutes, self._history.take_verdicts),
                (rollups, rolled, self._history.take_rollups),
            ):
                first, last = np.searchsorted(times, [minute, after])
                if last > first:
                    take(rows.slice(first, last - first))
            self._evaluate(after)

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
