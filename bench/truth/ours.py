"""The service itself as a judged system: its own SLOs, counters, deadlines and alerts.

While all is well it learns what is usual, and what `tailburn slo suggest` would propose. At the
fork these SLOs come into force, with the last days as their history; from then on every alert
is evaluated each minute, as the service evaluates it, on the rows that it would have had.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.truth.proposal import Healthy
from bench.truth.rows import rows_of
from bench.truth.systems import Told
from tailburn.app.incidents import Incidents
from tailburn.engine import rollup
from tailburn.engine.backtest.minutes import columns_for, count
from tailburn.engine.baseline import Usual
from tailburn.engine.counted import rows_of as verdict_rows
from tailburn.engine.evaluation import AlertKey, Flip, State, Status, evaluate, history_of
from tailburn.engine.grouping import F64
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS, USUAL, VERDICTS
from tailburn.engine.slo.lateness import DEADLINE, has_deadlines, lateness
from tailburn.engine.slo.model import Slo
from tailburn.engine.slo.verdicts import Requests, tally
from tailburn.lab.fleet import Fleet
from tailburn.lab.score.outcome import Outcome, Page
from tailburn.rules.ruleset import watches_of

MINUTE_NS: Final = 60 * 10**9
DAY_NS: Final = 1_440 * MINUTE_NS
REMEMBERED_NS: Final = 3 * DAY_NS + 60 * MINUTE_NS
"""Rollups of so long are looked back at: the same hour of three days."""
_NO_DIMENSION: Final = tuple(
    name for name in ROLLUP_DIMENSIONS if name not in ("model", "request_type")
)


@dataclass
class _Learning:
    """What is gathered while nothing is promised yet."""

    healthy: Healthy = field(default_factory=Healthy)
    rollups: tuple[pa.Table, ...] = ()

    def take(self, rows: pa.Table) -> None:
        self.healthy.take(rows)
        if not len(rows):
            return
        oldest = int(rows["received_ns"][-1].as_py()) - REMEMBERED_NS
        kept = (t for t in self.rollups if t["minute_ns"][-1].as_py() >= oldest)
        self.rollups = (*kept, _rollups(rows))


class _Watching:
    """SLOs in force: their counters and alerts, minute by minute."""

    def __init__(self, learnt: _Learning, now_ns: int) -> None:
        self.slos = learnt.healthy.slos()
        self.watches = watches_of(self.slos)
        self.history = history_of(self.watches)
        self.states: dict[AlertKey, State] = {}
        self.flips: list[Flip] = []
        self.incidents = Incidents((), {})
        self._remember(learnt, now_ns)

    def _remember(self, learnt: _Learning, now_ns: int) -> None:
        """What was before, as far back as alerts look."""
        rollups = pa.concat_tables([ROLLUPS.empty_table(), *learnt.rollups])
        lately = learnt.healthy.last.after(now_ns - REMEMBERED_NS)
        counted = [count(rows, self.slos) for rows in lately.rows(columns_for(self.slos), "")]
        verdicts = pa.concat_tables([VERDICTS.empty_table(), *counted])
        begin_ns = now_ns - REMEMBERED_NS
        rollups, verdicts = (
            t.filter(pc.greater_equal(t["minute_ns"], begin_ns)) for t in (rollups, verdicts)
        )
        self.history.recall_rollups(rollups, begin_ns, now_ns)
        if len(verdicts):
            self.history.take_verdicts(verdicts)
        self.history.trim(now_ns)

    def take(self, rows: pa.Table, deadline_s: Mapping[str, F64], minutes_ns: range) -> None:
        """Rows that closed within these minutes."""
        verdicts = [count(rows, self.slos), *_deadlines(rows, deadline_s, self.slos)]
        by_minute = dict(_by_minute(pa.concat_tables(verdicts)))
        rollups = dict(_by_minute(_rollups(rows)))
        for at in minutes_ns:
            self.history.cover(at, at + MINUTE_NS)
            if at in by_minute:
                self.history.take_verdicts(by_minute[at])
            if at in rollups:
                self.history.take_rollups(rollups[at])
            self._evaluate(at + MINUTE_NS)
        self.history.trim(minutes_ns.stop)

    def _evaluate(self, now_ns: int) -> None:
        known = self.incidents.all()
        self.states, flips = evaluate(self.watches, self.history, self.states, known, now_ns)
        self.incidents.take(flips)
        self.flips += flips


class Ours:
    """The service, without its wires."""

    name = "tailburn"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._usual = Usual(_nothing)
        self._waiting: pa.Table | None = None
        self._learning = _Learning()
        self._watching: _Watching | None = None
        self._now_ns = 0

    def hear(self, told: Told) -> None:
        """Requests that closed by its end; those that didn't wait for the next one."""
        rows = rows_of(told.arrived, self._fleet)
        self.take(rows, told.slice.start_ns, told.slice.end_ns)

    def take(self, rows: pa.Table, start_ns: int, end_ns: int) -> None:
        """Rows of REQUESTS that were over from one whole minute until another."""
        rows = self._closed(rows, end_ns)
        deadline_s = self._usual.take(rows)
        self._now_ns = end_ns
        if self._watching is None:
            self._learning.take(rows)
        else:
            minutes_ns = range(start_ns, end_ns, MINUTE_NS)
            self._watching.take(rows, deadline_s, minutes_ns)

    def fork(self) -> Self:
        """One that judges from here on by what was learnt so far."""
        if self._watching is None:
            self._watching = _Watching(self._learning, self._now_ns)
        forked = copy(self)
        forked._usual = deepcopy(self._usual)
        forked._watching = deepcopy(self._watching)
        return forked

    def proposing_s(self) -> float:
        """Seconds of CPU that proposals from what was heard so far take."""
        begun = time.process_time()
        self._learning.healthy.tried()
        return time.process_time() - begun

    def outcome(self, asked: Sequence[tuple[int, int]]) -> Outcome:
        """Pages and tickets."""
        assert self._watching is not None, "forked first"
        slos = {slo.name: slo for slo in self._watching.slos}
        return Outcome(self.name, tuple(pages_of(self._watching.flips, slos)))

    def _closed(self, rows: pa.Table, end_ns: int) -> pa.Table:
        if self._waiting is not None:
            rows = pa.concat_tables([self._waiting, rows]).unify_dictionaries().combine_chunks()
            rows = rows.take(np.argsort(rows["received_ns"].to_numpy(), kind="stable"))
        closed = int(np.searchsorted(rows["received_ns"].to_numpy(), end_ns))
        self._waiting = rows.slice(closed)
        return rows.slice(0, closed)


def _nothing(since_ns: int) -> pa.Table:
    return USUAL.empty_table()


def pages_of(flips: Sequence[Flip], slos: Mapping[str, Slo]) -> Iterator[Page]:
    """Each time that an alert fired, until it was over; frozen it still is on."""
    open_: dict[AlertKey, int] = {}
    for flip in flips:
        if flip.new is Status.FIRING:
            open_.setdefault(flip.key, flip.at_ns)
        elif flip.new is Status.INACTIVE and flip.key in open_:
            yield _page(flip.key, slos, open_.pop(flip.key), flip.at_ns)
    for key, start_ns in open_.items():
        yield _page(key, slos, start_ns, None)


def _page(key: AlertKey, slos: Mapping[str, Slo], start_ns: int, end_ns: int | None) -> Page:
    alert = " ".join(filter(None, (key.alertname, key.objective, key.long)))
    dims = {"slo": key.slo, **slos[key.slo].select, **dict(key.by)}
    return Page(start_ns, end_ns, key.severity, alert, dims)


def _deadlines(
    rows: pa.Table, deadline_s: Mapping[str, F64], slos: Sequence[Slo]
) -> Iterator[pa.Table]:
    """VERDICTS of deadlines."""
    requests = Requests(rows)
    minute_ns = rows["received_ns"].to_numpy() // MINUTE_NS * MINUTE_NS
    for slo in filter(has_deadlines, slos):
        found = tally(requests, lateness(requests, slo, deadline_s), slo, minute_ns)
        sums = {}
        for one in found:
            _, good, bad, unmeasured = one.counts[0].tolist()
            by = json.dumps(dict(zip(slo.by, one.values, strict=True)))
            sums[one.minute_ns, slo.name, DEADLINE, "", by] = (good + bad, bad, unmeasured, 0)
        yield verdict_rows("verdicts", sums)


def _rollups(rows: pa.Table) -> pa.Table:
    """Of the dimensions that some SLO asks for; of gateways' clocks."""
    for name in _NO_DIMENSION:
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.field(at), pa.nulls(len(rows), rows.field(at).type))
    return rollup.fold(rows)


def _by_minute(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Parts of a table with `minute_ns`, each minute's together, in order."""
    if not len(rows):
        return
    minute = rows["minute_ns"].to_numpy()
    order = np.argsort(minute, kind="stable")
    rows, minute = rows.take(order), minute[order]
    begins = np.flatnonzero(np.append(True, minute[1:] != minute[:-1]))
    for begin, end in zip(begins, np.append(begins[1:], len(minute)), strict=True):
        yield int(minute[begin]), rows.slice(begin, end - begin)
