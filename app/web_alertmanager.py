"""Alertmanager's webhook (scope `respond`): whom it told of incidents, and that it knows more."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from tailburn.alerts.pager.alertmanager import ALERTNAME
from tailburn.alerts.pager.text import clean
from tailburn.alerts.silences.matching import INCIDENT_LABEL
from tailburn.app.answers.incidents import seen_by
from tailburn.app.guard import seen_tenant
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.tenants import selected_tenants
from tailburn.app.web_json import json_answer
from tailburn.collector.doors.access import Gate
from tailburn.engine.slo.model import Slo

MOST_ALERTS = 10_000
_MOST_DIGITS = 9


class TheirAlert(BaseModel):
    """One alert of a notification; what else it says is not looked at."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]


class Notification(BaseModel):
    """What Alertmanager posts to a webhook, version 4."""

    receiver: str
    alerts: Annotated[list[TheirAlert], Field(max_length=MOST_ALERTS)]


def alertmanager_routes(
    keeping: IncidentKeeping, slos: Iterable[Slo], gate: Gate, now_ns: Callable[[], int]
) -> APIRouter:
    """`/api/alertmanager`. Alerts that are no incident of ours are left alone, and counted."""
    routes = APIRouter(prefix="/api/alertmanager")
    tenants = selected_tenants(slos)

    @routes.post("")
    def heard(request: Request, told: Notification) -> Response:
        tenant, noted = seen_tenant(request, gate), 0
        by = f"Alertmanager, receiver {clean(told.receiver)}"
        for number, status in _incidents(told.alerts).items():
            incident = keeping.incidents.one(number)
            if incident is None or not seen_by(tenant, [incident], tenants):
                continue
            what = "trigger" if status == "firing" else "resolve"
            keeping.hear(number, f"{what} by {by}", now_ns())
            noted += 1
        answer: dict[str, Any] = {"alerts": len(told.alerts), "incidents": noted}
        return json_answer(answer)

    return routes


def _incidents(alerts: Iterable[TheirAlert]) -> dict[int, str]:
    """How each incident stands there; one that got worse has an alert that fires and one over."""
    found: dict[int, str] = {}
    for alert in alerts:
        number = alert.labels.get(INCIDENT_LABEL, "")
        if alert.labels.get("alertname") != ALERTNAME or not number.isdecimal():
            continue
        if len(number) <= _MOST_DIGITS and found.get(int(number)) != "firing":
            found[int(number)] = alert.status
    return found
