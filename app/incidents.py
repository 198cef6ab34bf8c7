"""Stretches in which an SLO was in trouble, from the changes of its alerts."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tailburn.engine.baseline.incidents import Incident
from tailburn.engine.evaluation import AlertKey, Flip, State
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.versions import Versions
from tailburn.rules.alerting import Kind

LOOKED_BACK_NS: Final = 73 * 3_600_000_000_000
"""What is compared with the days before looks back three days, and an hour for its window."""


class Incidents:
    """What fired lately: pages of every kind, and tails worse than before."""

    def __init__(self, flips: Iterable[Flip], states: Mapping[AlertKey, State]) -> None:
        """`flips`: of the last three days and an hour, oldest first; `states`: those of now."""
        self._over: list[Incident] = []
        self._since: dict[AlertKey, int] = {}
        self.take(flips)
        for key, state in states.items():  # fired before the oldest flip, and fires still
            if state.status.fires and _counts(key):
                self._since.setdefault(key, state.active_since_ns)

    def take(self, flips: Iterable[Flip]) -> None:
        """What changed, oldest first."""
        for flip in flips:
            if not _counts(flip.key):
                continue
            if flip.new.fires:
                self._since.setdefault(flip.key, flip.at_ns)
            elif (since_ns := self._since.pop(flip.key, None)) is not None:
                self._over.append(_incident(flip.key, since_ns, flip.at_ns))

    def trim(self, now_ns: int) -> None:
        """Forget what nothing at `now_ns` or later is compared with."""
        self._over = [i for i in self._over if (i.end_ns or 0) > now_ns - LOOKED_BACK_NS]

    def all(self) -> list[Incident]:
        return [*self._over, *(_incident(k, since_ns, None) for k, since_ns in self._since.items())]


def fired_lately(alerts: Alerts, versions: Versions, now_ns: int) -> list[Incident] | None:
    """What fired in the last three days, as dimensions of requests; None: nothing ever was asked.

    An alert speaks of what its SLO selects, and of its own values of `by`.
    """
    standing = alerts.standing()
    if standing.minute_ns is None:
        return None
    since_ns = now_ns - LOOKED_BACK_NS
    lately = versions.all(since_ns)
    selects = {row.slo: json.loads(row.document)["slo"]["select"] for row in lately}
    found = Incidents(alerts.flips(since_ns), standing.states).all()
    return [
        replace(incident, where={**selects.get(incident.where["slo"], {}), **incident.where})
        for incident in found
    ]


def _counts(key: AlertKey) -> bool:
    return key.severity == Severity.PAGE or key.alertname == Kind.REGRESSION


def _incident(key: AlertKey, start_ns: int, end_ns: int | None) -> Incident:
    return Incident(start_ns, end_ns, key.alertname, {"slo": key.slo, **dict(key.by)})
