"""Receivers: one per delivery, with every secret left to a file that Alertmanager reads."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tailburn.alerts.alertmanager.delivery import Delivery, Kind
from tailburn.engine.slo.burn import Severity

Config = dict[str, Any]

_PRIORITIES: Final = {Severity.PAGE: "P1", Severity.TICKET: "P3"}  # Opsgenie's
_URGENCIES: Final = {Severity.PAGE: "critical", Severity.TICKET: "warning"}  # PagerDuty's
_TITLE: Final = '{{ template "tailburn.title" . }}'
_TEXT: Final = '{{ template "tailburn.text" . }}'
_DASHBOARD: Final = '{{ template "tailburn.dashboard" . }}'


def secret_file(delivery: Delivery, folder: str) -> str | None:
    """The file in which this delivery's secret must stand; None where it can do without."""
    if delivery.kind in (Kind.PAGERDUTY, Kind.OPSGENIE, Kind.SLACK):
        return f"{folder.rstrip('/')}/{delivery.receiver}-{delivery.kind}"
    return None


def receiver(delivery: Delivery, folder: str, smarthost: str) -> Config:
    """The entry of `receivers`, which works from Alertmanager 0.25 on.

    `smarthost` is the mail server; empty where the configuration names one for all.
    """
    key, config = _CONFIGS[delivery.kind](delivery, secret_file(delivery, folder) or "")
    if delivery.kind is Kind.EMAIL and smarthost:
        sender = f"alertmanager@{delivery.address.rpartition('@')[2]}"
        config |= {"smarthost": smarthost, "from": sender}
    return {"name": delivery.receiver, key: [{**config, "send_resolved": True}]}


def _pagerduty(delivery: Delivery, secret: str) -> tuple[str, Config]:
    return "pagerduty_configs", {
        "routing_key_file": secret,
        "severity": _URGENCIES[delivery.severity],
        "description": _TITLE,
        "client": "tailburn",
        "client_url": _DASHBOARD,
        "details": {"firing": _TEXT},
    }


def _opsgenie(delivery: Delivery, secret: str) -> tuple[str, Config]:
    return "opsgenie_configs", {
        "api_key_file": secret,
        "message": _TITLE,
        "description": _TEXT,
        "priority": _PRIORITIES[delivery.severity],
        "tags": "tailburn,{{ .CommonLabels.slo }}",
    }


def _slack(delivery: Delivery, secret: str) -> tuple[str, Config]:
    channel = {"channel": delivery.address} if delivery.address else {}
    return "slack_configs", {
        "api_url_file": secret,
        **channel,
        "color": '{{ if eq .Status "firing" }}danger{{ else }}good{{ end }}',
        "title": _TITLE,
        "title_link": _DASHBOARD,
        "fallback": _TITLE,
        "text": _TEXT,
    }


def _email(delivery: Delivery, secret: str) -> tuple[str, Config]:
    return "email_configs", {
        "to": delivery.address,
        "headers": {"Subject": _TITLE},
        "text": _TEXT,
        "html": '{{ template "tailburn.html" . }}',
    }


def _webhook(delivery: Delivery, secret: str) -> tuple[str, Config]:
    return "webhook_configs", {"url": delivery.address}


_CONFIGS: Final[Mapping[Kind, Callable[[Delivery, str], tuple[str, Config]]]] = {
    Kind.PAGERDUTY: _pagerduty,
    Kind.OPSGENIE: _opsgenie,
    Kind.SLACK: _slack,
    Kind.EMAIL: _email,
    Kind.WEBHOOK: _webhook,
}
