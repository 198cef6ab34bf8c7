"""Alerts evaluated each whole minute, on a thread of its own, and kept over restarts.

What is looked at are rows that were published, so a kill changes no state: after a start the
same rows are there, and evaluation goes on behind the last minute that was written down.
While the state database is away alerts are judged on, and written down once it is back.
Minutes in which nothing ran are a gap, and not evaluated one by one.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.exc import DBAPIError

from tailburn.app.alert_log import (
    explained,
    tell_damaged,
    tell_edit,
    tell_flips,
    tell_gap,
    tell_set_back,
)
from tailburn.app.evaluation_health import Health
from tailburn.app.incidents import LOOKED_BACK_NS, Incidents, fired_lately
from tailburn.app.minutes import CATCH_UP_NS, Due, due
from tailburn.app.new_budgets import NewBudgets
from tailburn.app.scaling import Scaling, ScalingSignals
from tailburn.app.unwritten import Evaluation, Unwritten
from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.evaluation import AlertKey, State, Watch, evaluate, history_of
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.gauges import EngineGauges, Key
from tailburn.engine.scaling.terms import Targets
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.api import Damaged, Store, StoreError, Window
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.database import reason_of
from tailburn.engine.store.state.forgetting import KEPT_NS, Forgetting
from tailburn.engine.store.state.versions import Edit, Versions
from tailburn.rules.ruleset import watches_of

log = logging.getLogger(__name__)

PATIENCE_S: Final = 30.0
"""No evaluation waits longer for rows that were received before it."""

_STEP_S: Final = 0.5
_HOUR_NS: Final = 60 * MINUTE_NS
_SIGNALS_BACK_NS: Final = 15 * MINUTE_NS

_FIRST: Final = "SELECT min(minute_ns) AS first_ns FROM verdicts"
_SIGNALS: Final = "SELECT * FROM signals WHERE received_ns >= ? ORDER BY received_ns"

States = Mapping[AlertKey, State]


@dataclass(frozen=True)
class Progress:
    """How far the log is taken in, and up to where its rows are in the store: positions."""

    taken: Callable[[], int]
    published: Callable[[], int]


@dataclass
class _Wait:
    """For rows received up to a minute: those of records up to a position of the log."""

    due: Due
    position: int
    since_s: float


class Evaluating:
    """The alerts of a service's SLOs. Everything may be asked from any thread."""

    def __init__(
        self,
        slos: Sequence[Slo],
        database: Database,
        now_ns: Callable[[], int],
        *,
        is_told: bool = False,
        targets: Targets | None = None,
        reads_gauges: bool = False,
        kept_ns: int = KEPT_NS,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_told`: the time is what senders tell, and begins with the first row.

        `targets`: what a replica should carry; `reads_gauges`: engines' metrics are read.
        `kept_ns`: how long changes of alerts and past definitions of SLOs are.
        """
        self.slos = tuple(slos)
        self.watches: tuple[Watch, ...] = tuple(watches_of(slos))
        self.health = Health(alerts=len(self.watches))
        self._alerts = Alerts(database)
        self._versions = Versions(database, kept_ns)
        self._forgetting = Forgetting(database, kept_ns)
        self._now_ns = now_ns
        self._is_told = is_told
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()  # held while history and gauges change, or are asked
        self._signals = ScalingSignals(slos, targets or Targets(), reads_gauges)
        self._scaling = Scaling()
        self._history = history_of(self.watches, self._signals.needs)
        self._gauges = self._new_gauges()
        self._states: States = {}
        self._edits: Sequence[Edit] = ()
        self._new_budgets: NewBudgets | None = None
        self._unwritten: Unwritten | None = None
        self._incidents = Incidents((), {})
        self._last_ns: int | None = None
        self._up_since_ns: int | None = None
        self._store: Store | None = None
        self._damaged: Sequence[Damaged] = ()  # segments, as told
        self._arrived: deque[tuple[str, pa.Table]] = deque()
        self._waiting: dict[str, list[pa.Table]] = {"verdicts": [], "rollups": [], "excess": []}
        self._wait: _Wait | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_failing = False
        self._is_begun = False
        self._is_heard = not is_told  # whether the time is known

    # --- begin and end

    def begin(self, store: Store) -> None:
        """Take up what was written down last. Rows published before this call are in `store`."""
        self._store = store
        now_ns = self._now_ns()
        minute_ns = now_ns // MINUTE_NS * MINUTE_NS
        standing = self._alerts.standing()
        self._states, last_ns = standing.states, standing.minute_ns
        self._unwritten = Unwritten(self._alerts, standing.states)
        if self._is_told:
            if last_ns is None:
                last_ns = self._first_ns(store)
            self._is_heard = last_ns is not None
        else:
            if last_ns is None:
                last_ns = minute_ns
            elif now_ns - last_ns > CATCH_UP_NS + MINUTE_NS:
                tell_gap(last_ns, now_ns)
                last_ns = minute_ns
            self._up_since_ns = minute_ns
        self._last_ns = last_ns
        flips = self._alerts.flips((last_ns or now_ns) - LOOKED_BACK_NS)
        self._incidents = Incidents(flips, self._states)
        self._edits = self._versions.load(self.slos, last_ns or now_ns)
        for edit in self._edits:
            tell_edit(edit)
        self._new_budgets = NewBudgets(self._versions, self._states, last_ns or now_ns)
        if last_ns is not None and self.watches:
            self._look_back(last_ns)
        self.health = replace(
            self.health,
            minute_ns=standing.minute_ns,
            series=self._history.series,
            active=_active(self._states),
        )
        self._is_begun = True

    def start(self, progress: Progress) -> None:
        """Evaluate from now on, until `close`."""
        self._caught_up()
        self._thread = threading.Thread(
            target=self._run, args=(progress,), name="alerts", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends once the evaluation that runs is written down, or can't be."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def take(self, table: str, rows: pa.Table) -> None:
        """Rows that were published, from any thread."""
        if table in ("verdicts", "rollups", "excess", "signals"):
            self._arrived.append((table, rows))

    # --- what is asked

    def states(self) -> dict[AlertKey, State]:
        """Alerts that are pending, firing or frozen."""
        return dict(self._states)

    def is_well(self) -> bool:
        """Whether all that is due is evaluated, and written down."""
        health = self.health
        is_begun = health.caught_up_s is not None
        return (
            is_begun and not health.is_behind(self._monotonic_s()) and not health.unwritten_minutes
        )

    def incidents(self, now_ns: int) -> list[Incident] | None:
        """What fired in the three days before, as written down; None: nothing was evaluated."""
        return fired_lately(self._alerts, self._versions, now_ns)

    def in_flight(self) -> dict[Key, float]:
        """Requests in flight now, by SLO, as engines and gateways show them; none until `begin`."""
        if not self._is_begun:
            return {}
        with self._lock:
            return self._gauges.in_flight(self._now_ns())

    def unmapped(self) -> dict[str, str]:
        """SLOs of whose requests in flight nothing is known, and why."""
        with self._lock:
            return self._gauges.unmapped(self._now_ns())

    def scaling(self) -> Scaling:
        """The signals for autoscalers as of the last minute that was evaluated."""
        return self._scaling

    @property
    def scaled(self) -> tuple[Slo, ...]:
        """The SLOs that have such signals."""
        return tuple(terms.slo for terms in self._signals.terms)

    def no_gauges(self, slo: Slo) -> str:
        """Why no gauge of an engine counts for an SLO, where none does."""
        with self._lock:
            return self._gauges.why_not(slo)

    # --- the loop

    def _run(self, progress: Progress) -> None:
        while not self._stopped.wait(_STEP_S):
            try:
                self.step(progress)
            except DBAPIError as error:
                self._fail(f"alerts are evaluated, and can't be written down: {reason_of(error)}")
            except Exception:
                # An alert that can't be judged must not silence the others for ever.
                if not self._is_failing:
                    log.exception("alerts can't be evaluated; it is tried again")
                self._fail("")
            else:
                self._is_failing = False

    def step(self, progress: Progress) -> None:
        """Evaluate what is due, as soon as its rows are there, and write it down.

        Raises `DBAPIError` where it can't be written; it is evaluated then, and written later.
        """
        assert self._unwritten is not None, "it has begun"
        if not self._unwritten.is_full:
            self._advance(progress)
        self._write_down()

    def _advance(self, progress: Progress) -> None:
        self._sort_arrived()
        if not self._is_heard or self._last_ns is None:
            self._caught_up()
            return
        if self._wait is None:
            found = due(self._last_ns, self._now_ns(), self._is_told)
            if found is None:
                self._caught_up()
                return
            self._wait = _Wait(found, progress.taken(), self._monotonic_s())
        is_there = progress.published() >= self._wait.position
        if not is_there and self._monotonic_s() - self._wait.since_s < PATIENCE_S:
            return
        self._sort_arrived()  # what became there since
        found, self._wait = self._wait.due, None
        if not is_there:
            self.health = replace(self.health, impatient=self.health.impatient + 1)
        self._prepare(found)
        for minute_ns in found.minutes():
            if self._stopped.is_set():
                return
            self._evaluate(minute_ns)
            self._write_down()
            self._forgetting.forget(minute_ns)
        self._caught_up()

    def _write_down(self) -> None:
        assert self._unwritten is not None, "it has begun"
        try:
            self._unwritten.write()
        finally:
            self.health = replace(self.health, unwritten_minutes=self._unwritten.minutes)

    def _caught_up(self) -> None:
        self.health = replace(self.health, caught_up_s=self._monotonic_s())

    def _hear(self, rows: pa.Table) -> None:
        """Senders tell the time: there is none before their first row."""
        self._is_heard = True
        self._up_since_ns = pc.min(rows["minute_ns"]).as_py()
        if self._last_ns is None:
            self._last_ns = self._up_since_ns

    def _first_ns(self, store: Store) -> int | None:
        """The first minute that was counted; None: none was."""
        try:
            first_ns: int | None = store.query(_FIRST)["first_ns"][0].as_py()
        except StoreError as error:
            log.error("alerts go on without what was before: %s", error)
            return None
        return first_ns

    def _prepare(self, found: Due) -> None:
        """Follow a clock that was set, and leave out minutes in which nothing ran."""
        if found.skipped:
            self._up_since_ns = found.last_ns
            skipped = self.health.skipped_minutes + found.skipped
            self.health = replace(self.health, skipped_minutes=skipped)
            tell_gap(self._last_ns or 0, found.until_ns)
        if found.set_back_ns:
            self._up_since_ns = found.last_ns
            self._look_back(found.last_ns, found.set_back_ns)  # fails while the database is away
            self._states = {k: _earlier(s, found.set_back_ns) for k, s in self._states.items()}
            tell_set_back(found.set_back_ns)
        self._last_ns = found.last_ns

    def _evaluate(self, minute_ns: int) -> None:
        assert self._new_budgets is not None and self._unwritten is not None, "it has begun"
        began_s = self._monotonic_s()
        let_go = self._new_budgets.let_go(minute_ns)
        with self._lock:
            self._feed(minute_ns)
            states, flips = evaluate(
                self.watches,
                self._history,
                self._states,
                self._incidents.all(),
                minute_ns,
                self._new_budgets.held,
            )
            scaling = self._signals.at(self._history, self._gauges, minute_ns)
        edits = [*self._edits, *let_go]
        flips = [explained(flip, edits) for flip in flips]
        evaluation = Evaluation(minute_ns, states, flips, self._up_since_ns)
        self._unwritten.take(evaluation)
        self._new_budgets.judged(self._states, states)
        self._states, self._edits, self._last_ns = states, (), minute_ns
        self._scaling = scaling
        self._incidents.take(flips)
        self._incidents.trim(minute_ns)
        with self._lock:
            self._history.trim(minute_ns)
            self._gauges.trim(minute_ns)
        tell_flips(flips)
        self.health = replace(
            self.health,
            minute_ns=minute_ns,
            took_s=self._monotonic_s() - began_s,
            series=self._history.series,
            active=_active(states),
            evaluations=self.health.evaluations + 1,
        )

    def _feed(self, minute_ns: int) -> None:
        """Give history the rows of the minutes before this one, and that the service ran."""
        for table, take in (
            ("verdicts", self._history.take_verdicts),
            ("rollups", self._history.take_rollups),
            ("excess", self._history.take_excess),
        ):
            later = []
            for rows in self._waiting[table]:
                is_past = pc.less(rows["minute_ns"], minute_ns)
                if len(past := rows.filter(is_past)):
                    take(past)
                if len(past) < len(rows):
                    later.append(rows.filter(pc.invert(is_past)))
            self._waiting[table] = later
        if self._up_since_ns is not None and self._up_since_ns < minute_ns:
            self._history.cover(max(self._up_since_ns, minute_ns - MINUTE_NS), minute_ns)
        self._note_in_flight(minute_ns, self._gauges)

    def _new_gauges(self) -> EngineGauges:
        return EngineGauges(slo for slo in self.slos if slo.source is None)

    def _note_in_flight(self, minute_ns: int, gauges: EngineGauges) -> None:
        by_slo: dict[str, dict[tuple[str, ...], float]] = {}
        for (slo, values), count in gauges.in_flight(minute_ns).items():
            by_slo.setdefault(slo, {})[values] = count
        for slo, counts in by_slo.items():
            self._history.take_in_flight(slo, minute_ns, counts)

    def _sort_arrived(self) -> None:
        while self._arrived:
            table, rows = self._arrived.popleft()
            if table == "signals":
                with self._lock:
                    self._gauges.take(rows)
                continue
            self._waiting[table].append(rows)
            if self._up_since_ns is None and len(rows):
                self._hear(rows)

    def _look_back(self, last_ns: int, set_back_ns: int = 0) -> None:
        """History as it was after the minute `last_ns`; later rows wait for their minutes.

        What was counted by a clock that has been set back since is so much younger than it says.
        """
        assert self._store is not None, "it has begun"
        since_ns = last_ns + set_back_ns - LOOKED_BACK_NS
        read_ns = last_ns - max(_SIGNALS_BACK_NS, self._signals.gauges_back_ns)
        slow_ns = last_ns + set_back_ns - self._signals.slow_back_ns
        try:
            rows = self._store.verdicts(Window(since_ns, None))
            excess = self._store.excess(Window(slow_ns, None))
            read_then_ns = read_ns + set_back_ns
            signals = self._store.query(_SIGNALS, [read_then_ns], window=Window(read_then_ns, None))
        except StoreError as error:
            log.error("alerts go on without what was before: %s", error)
            return
        with self._lock:
            self._signals.begin()
            self._history = history_of(self.watches, self._signals.needs)
            self._waiting["verdicts"] = [_aged(rows, set_back_ns)]
            self._waiting["excess"] = [_aged(excess, set_back_ns)]
            for begin_ns, end_ns in self._alerts.covered(since_ns):
                self._history.cover(begin_ns - set_back_ns, end_ns - set_back_ns)
            past = self._gauges
            if set_back_ns:  # what is in memory is told apart there
                self._gauges.set_back(self._now_ns(), set_back_ns)
                past = self._new_gauges()
            past.take(_aged(signals, set_back_ns, "received_ns"))
            for minute_ns in range(read_ns, last_ns, MINUTE_NS):
                self._note_in_flight(minute_ns, past)
            try:
                self._recall_rollups(last_ns, set_back_ns)
            except StoreError as error:
                log.error("alerts on percentiles go on without what was before: %s", error)
            tell_damaged([d for d in self._store.damaged() if d not in self._damaged])
            self._damaged = tuple(self._store.damaged())
            self._feed(last_ns)
            self._scaling = self._signals.again(self._history, past, last_ns)

    def _recall_rollups(self, last_ns: int, set_back_ns: int) -> None:
        """Buckets as they were known, an hour at a time; later ones wait for their minutes."""
        assert self._store is not None, "it has begun"
        buckets = self._history.buckets
        by, clocks = ("minute_ns", *buckets.dimensions), sorted(buckets.clocks)
        end_ns, self._waiting["rollups"] = last_ns + set_back_ns, []
        if not clocks:
            return
        for begin_ns in range(end_ns - buckets.reach * MINUTE_NS, end_ns, _HOUR_NS):
            until_ns = min(begin_ns + _HOUR_NS, end_ns)
            rows = self._store.rollups(Window(begin_ns, until_ns), by=by, clocks=clocks)
            self._history.recall_rollups(
                _aged(rows, set_back_ns), begin_ns - set_back_ns, until_ns - set_back_ns
            )
        later = self._store.rollups(Window(end_ns, None), by=by, clocks=clocks)
        self._waiting["rollups"] = [_aged(later, set_back_ns)]

    def _fail(self, what: str) -> None:
        self.health = replace(self.health, failures=self.health.failures + 1)
        if what and not self._is_failing:
            log.error("%s; it is tried again until it succeeds", what)
        self._is_failing = True
        self._wait = None


def _earlier(state: State, by_ns: int) -> State:
    return replace(
        state, since_ns=state.since_ns - by_ns, active_since_ns=state.active_since_ns - by_ns
    )


def _aged(rows: pa.Table, by_ns: int, column: str = "minute_ns") -> pa.Table:
    times = pc.subtract(rows[column], by_ns)
    return rows.set_column(rows.column_names.index(column), column, times)


def _active(states: States) -> Mapping[tuple[str, str], int]:
    return Counter((key.severity, str(state.status)) for key, state in states.items())
