"""What is known of an incident as somebody is told of it: from the store, and what is evaluated.

Whatever can not be found out is left out: a page does not wait for it, and does not fail by it.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tailburn.alerts.incidents.grouping import named
from tailburn.alerts.pager.text import SlowTrace, Told
from tailburn.app.answers.budgets import budget_rows
from tailburn.app.answers.changes import in_words
from tailburn.app.answers.owning import Owned, Suffers, Times, owned_now
from tailburn.app.answers.promises import promises_of
from tailburn.app.evaluating import Evaluating
from tailburn.engine.evaluation import AlertKey
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.incidents import Incident, What
from tailburn.engine.names import TEAM_LABEL
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import Store, StoreError, Window
from tailburn.engine.store.state.changes import Changes
from tailburn.rules.alerting import Kind

log = logging.getLogger(__name__)

_NOW_NS: Final = 5 * MINUTE_NS
_BEFORE_NS: Final = 60 * MINUTE_NS
_TRACES: Final = 3
_BURNS: Final = (Kind.BURN, Kind.DEADLINE)
_CLOCKS: Final = {
    "ttft": "ttft_{vantage}_s", "tpot": "tpot_{vantage}_s", "itl": "itl_max_s",
    "e2e": "e2e_{vantage}_s", "queue": "queue_s",
}  # fmt: skip


class Facts:
    """Of the incidents of one service."""

    def __init__(
        self, store: Store, evaluating: Evaluating, changes: Changes, public_url: str | None
    ) -> None:
        self._changes = changes
        self._store = store
        self._evaluating = evaluating
        self._slos = {slo.name: slo for slo in evaluating.slos}
        self._public_url = (public_url or "").rstrip("/")

    def told(self, incident: Incident, what: What, at_ns: int) -> Told:
        """All that is known at `at_ns`. Never raises for what can not be found out."""
        key = gravest(incident)
        slo = self._slos.get(key.slo)
        told = Told(
            what=what,
            severity=incident.severity,
            number=incident.id or 0,
            slo=key.slo,
            objective=key.objective or key.alertname,
            where={n: v for n, v in incident.where.items() if n != TEAM_LABEL},
            began_ns=min(m.began_ns for m in incident.members),
            at_ns=at_ns,
            why=self._why(key),
            others=tuple(named(m.key) for m in incident.firing if m.key != key),
            more_slos=len(set(incident.slos) - {key.slo}),
            links=self._links(incident, slo),
        )
        if slo is None:
            return told
        try:
            return self._measured(told, key, slo, incident)
        except StoreError as error:
            log.error("incident %s is told without what the store has: %s", incident.id, error)
        except Exception:
            # Whatever it is, somebody has to be woken all the same.
            log.exception("incident %s is told without what the store has", incident.id)
        return told

    def _measured(self, told: Told, key: AlertKey, slo: Slo, incident: Incident) -> Told:
        budget = self._budget(key, slo, told.at_ns)
        told = replace(
            told,
            changes=self._changed(told, slo, key),
            burn_rate=budget.get("burn_rate"),
            left_ratio=budget.get("left_ratio"),
            gone_ns=budget.get("gone_ns"),
        )
        if told.what is What.RESOLVE:
            return told
        slo = replace(slo, select={**slo.select, **dict(key.by)})
        clock = next((str(o.clock) for o in objectives(slo) if o.name == key.objective and o.clock),
                     None)  # fmt: skip
        owned = self._owned(slo, key, clock, told.began_ns, told.at_ns)
        traces = self._traces(slo, clock, told.at_ns)
        return replace(told, owner=owned.hop, says=owned.says, traces=traces)

    def _why(self, key: AlertKey) -> str:
        state = self._evaluating.states().get(key)
        return state.why if state is not None else f"{key.alertname} of {key.objective}".strip()

    def _budget(self, key: AlertKey, slo: Slo, at_ns: int) -> Mapping[str, Any]:
        rows = budget_rows(self._store, promises_of([slo]), at_ns, slo=slo.name)
        mine = [row for row in rows if row["by"] == dict(key.by)]
        own = [row for row in mine if row["objective"] == key.objective]
        burning = sorted(mine, key=lambda row: -(row["burn_rate"] or 0.0))
        return next(iter(own or burning), {})

    def _changed(self, told: Told, slo: Slo, key: AlertKey) -> tuple[str, ...]:
        """What was done in the hour before it began, and since: the latest first."""
        where = {**slo.select, **dict(key.by)}
        since_ns = told.began_ns - _BEFORE_NS
        found = self._changes.all(since_ns, told.at_ns + 1, where, slo.select.get("tenant"))
        return tuple(in_words(change) for change in reversed(found))

    def _owned(
        self, slo: Slo, key: AlertKey, clock: str | None, began_ns: int, at_ns: int
    ) -> Owned:
        """Now against the hour before an alert could have been in trouble."""
        well_ns = began_ns - _NOW_NS
        times = Times(Window(well_ns - _BEFORE_NS, well_ns), Window(at_ns - _NOW_NS, at_ns))
        return owned_now(self._store, times, Suffers(slo, key.objective, clock))

    def _traces(self, slo: Slo, clock: str | None, at_ns: int) -> tuple[SlowTrace, ...]:
        column = _CLOCKS[clock or "ttft"].format(vantage=slo.vantage)
        window = Window(at_ns - _NOW_NS, at_ns)
        rows = self._store.requests(window, dict(slo.select), columns=["trace_id", column])
        slow = rows.filter(rows[column].is_valid()).sort_by([(column, "descending")])
        return tuple(
            SlowTrace(row["trace_id"], row[column], self._trace_url(row["trace_id"]))
            for row in slow.slice(0, _TRACES).to_pylist()
        )

    def _trace_url(self, trace_id: str) -> str:
        return f"{self._public_url}/api/traces/{trace_id}" if self._public_url else ""

    def _links(self, incident: Incident, slo: Slo | None) -> dict[str, str]:
        links = {}
        if slo is not None:
            urls = {"runbook": slo.runbook_url, "dashboard": slo.dashboard_url}
            links = {name: url for name, url in urls.items() if url}
        if self._public_url:
            links["incident"] = f"{self._public_url}/api/incidents/{incident.id}"
        return links


def gravest(incident: Incident) -> AlertKey:
    """The alert that an incident is told by: of those as grave as it the first, firing ones first.

    Burn alerts say what it costs, so they go before others.
    """
    return min(
        incident.members,
        key=lambda m: (
            m.key.severity != incident.severity, m.ended_ns is not None,
            m.key.alertname not in _BURNS, m.began_ns,
        ),
    ).key  # fmt: skip
