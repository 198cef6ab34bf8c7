"""How alerts stand, as plain rows: the state of each, since when, and why."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tailburn.app.tenants import is_seen_by
from tailburn.engine.evaluation import AlertKey, State, Status, Watch

_QUIET: Final = "not in trouble"


def alert_rows(
    states: Mapping[AlertKey, State],
    watches: Sequence[Watch] = (),
    tenants: Mapping[str, str] | None = None,
    tenant: str | None = None,
) -> list[dict[str, Any]]:
    """A row per alert that is in trouble, and one per watch of which none is; for one tenant.

    `tenants`: the tenant that an SLO selects, by its name.
    """
    own = tenants or {}
    active = {key._replace(by=()) for key in states}
    rows = [
        _row(key, state)
        for key, state in states.items()
        if is_seen_by(tenant, own.get(key.slo), key.by)
    ]
    for watch in watches:
        key = watch.key
        if key not in active and is_seen_by(tenant, own.get(key.slo), key.by):
            rows.append(_row(key, None))
    return sorted(rows, key=_gravest_first)


def _row(key: AlertKey, state: State | None) -> dict[str, Any]:
    return {
        "status": str(state.status if state else Status.INACTIVE),
        "severity": key.severity,
        "alertname": key.alertname,
        "slo": key.slo,
        "objective": key.objective,
        "by": dict(key.by),
        "long": key.long,
        "short": key.short,
        "since_ns": state.since_ns if state else None,
        "active_since_ns": state.active_since_ns if state else None,
        "value": state.value if state else None,
        "why": state.why if state else _QUIET,
    }


_ORDER: Final = {str(s): i for i, s in enumerate((Status.FIRING, Status.FROZEN, Status.PENDING))}


def _gravest_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    status = _ORDER.get(row["status"], len(_ORDER))
    by = tuple(row["by"].items())
    return (status, row["severity"], row["slo"], row["alertname"], row["objective"], by)
