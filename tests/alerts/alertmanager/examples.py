"""SLOs and ways of delivery that the tests of Alertmanager's side share."""

from dataclasses import replace
from itertools import chain

from tailburn.alerts.alertmanager.delivery import Delivery, Kind
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import (
    Clock,
    Completion,
    Place,
    Regression,
    ScaleOut,
    Slo,
    Tier,
)
from tailburn.rules.alerting import Alert
from tailburn.rules.ruleset import alerts_of

CHAT = Slo(
    name="chat",
    place=Place("chat.yaml", 1),
    labels={"team": "assistants"},
    select={"pool": "interactive", "request_type": "chat"},
    by=("model",),
    clocks={
        Clock.TTFT: {
            Tier.ACCEPTABLE: {"p50": 0.3, "p95": 0.5, "p99": 1.0},
            Tier.CRITICAL: {"p50": 1.0},
        }
    },
    availability_ratio=0.999,
    regression=Regression(),
    scale_out=ScaleOut(),
    runbook_url="https://runbooks.example/chat",
    dashboard_url="https://grafana.example/d/chat",
)
GATEWAY = Slo(
    name="gateway",
    place=Place("gateway.yaml", 1),
    labels={"team": "assistants"},
    availability_ratio=0.999,
)
DOCUMENTS = Slo(
    name="documents",
    place=Place("documents.yaml", 1),
    labels={"team": "batch"},
    select={"pool": "batch"},
    completion=Completion(within_s=20.0, objective_ratio=0.99),
    consistency_p99_over_p50=3.0,
)
SLOS = (CHAT, GATEWAY, DOCUMENTS)

PAGES = Delivery(Severity.PAGE, "", Kind.PAGERDUTY)
TICKETS = Delivery(Severity.TICKET, "", Kind.SLACK, "#slo")
DELIVERIES = (PAGES, TICKETS, replace(PAGES, team="assistants", kind=Kind.OPSGENIE))


def all_alerts() -> tuple[Alert, ...]:
    """Every alert of the SLOs."""
    return tuple(chain.from_iterable(map(alerts_of, SLOS)))


def labels_of(alert: Alert, **by: str) -> dict[str, str]:
    """The labels with which it fires."""
    return {"alertname": str(alert.kind), **alert.labels, **by}
