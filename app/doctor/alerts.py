"""Whether alerts are evaluated: of the SLOs that are meant, and up to now."""

import time
from collections.abc import Iterator
from typing import Final

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.doctor.store import is_held
from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.app.slo_files import load_slos
from tailburn.app.standing.words import about, moment
from tailburn.app.state import known_state
from tailburn.app.terminal.text import many
from tailburn.collector.log.lock import holder_of
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import objectives
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.versions import Versions

BEHIND_NS: Final = 180_000_000_000
"""A minute is evaluated within 35 s of its end, and the next one a minute later."""

_SUBJECT: Final = "alerts"
_START: Final = "`tailburn serve --slo FILE`; `tailburn slo init` writes one"
_RESTART: Final = "restart the service with the SLOs that are meant"
_LOG: Final = (
    "the log of the service says why it fails or waits; see tailburn_evaluation_failures_total"
)

Budgets = set[tuple[str, str, str]]


def alerts(settings: Settings) -> Iterator[Finding]:
    """One line; none where the SLOs can't be read, which `mixes` tells."""
    try:
        wanted: Budgets = {
            (slo.name, objective.name, definition_of(slo, objective))
            for slo in load_slos(settings.slo)
            for objective in objectives(slo)
        }
    except UserError:
        return
    try:
        with known_state(settings) as state:
            known = Versions(state).in_force() if state else []
            minute_ns = Alerts(state).standing().minute_ns if state else None
    except UserError as error:
        yield Finding(_SUBJECT, State.BAD, str(error), "nothing is evaluated without it")
        return
    loaded: Budgets = {(row.slo, row.objective, row.definition) for row in known}
    if is_held(settings.store):
        yield _running(settings, wanted, loaded, minute_ns)
    elif not wanted:
        yield Finding(_SUBJECT, State.NO_DATA, "no SLOs: nothing is evaluated", _START)
    else:
        last = f"evaluated up to {moment(minute_ns)} UTC" if minute_ns else "never evaluated"
        yield Finding(_SUBJECT, State.NO_DATA, f"{last}: no service runs on this store", _START)


def _running(
    settings: Settings, wanted: Budgets, loaded: Budgets, minute_ns: int | None
) -> Finding:
    if not loaded:
        seen = "the service that runs has no SLOs: nothing is evaluated"
        return Finding(_SUBJECT, State.WARN if wanted else State.NO_DATA, seen, _START)
    of = f"{many(len(loaded), 'budget')} of {many(len({slo for slo, *_ in loaded}), 'SLO')}"
    if settings.clock == "telemetry":
        upto = f", up to {moment(minute_ns)} UTC by the senders' time" if minute_ns else ""
        return Finding(_SUBJECT, State.NO_DATA, f"{of}{upto}: how late that is can't be told")
    holder = holder_of(settings.store)
    since_ns = max(minute_ns or 0, holder.started_ns if holder else 0)
    late_ns = time.time_ns() - since_ns
    if late_ns > BEHIND_NS:
        last = f"the last minute evaluated is {moment(minute_ns)} UTC" if minute_ns else "none ever"
        seen = f"{of}, behind by {about(late_ns / 1e9)}: {last}"
        return Finding(_SUBJECT, State.BAD, seen, _LOG)
    if minute_ns is None:
        return Finding(_SUBJECT, State.NO_DATA, f"{of}, the first minute is not over yet")
    if wanted and wanted != loaded:
        seen = f"{of} are evaluated, and they are not those of these settings"
        return Finding(_SUBJECT, State.WARN, seen, _RESTART)
    return Finding(_SUBJECT, State.OK, f"{of}, evaluated up to {moment(minute_ns)} UTC")
