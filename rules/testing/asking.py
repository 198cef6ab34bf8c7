"""Questions about an alert: does it fire, and with exactly which labels."""

from tailburn.engine.names import (
    LONG_LABEL,
    OBJECTIVE_LABEL,
    SEVERITY_LABEL,
    SHORT_LABEL,
    SLO_LABEL,
)
from tailburn.rules.alerting import Alert
from tailburn.rules.promql import duration, selector
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Question, sample_name

_ALERTS = "ALERTS"
_TOLD_APART = (
    *("alertname", "alertstate", SLO_LABEL, SEVERITY_LABEL, OBJECTIVE_LABEL),
    *(LONG_LABEL, SHORT_LABEL),
)


def fires(alert: Alert, at_s: int, *by: dict[str, str]) -> Question:
    """It fires for the label set in trouble, or for those given, and for no other."""
    labels = _labels(alert)
    names = (sample_name(_ALERTS, labels | one) for one in by or (troubled(alert.slo),))
    return Question(at_s, _asked(labels), dict.fromkeys(names, 1.0))


def is_silent(alert: Alert, at_s: int) -> Question:
    """It fires for nobody."""
    return Question(at_s, _asked(_labels(alert)), {})


def never_waited(alert: Alert, until_s: int) -> Question:
    """It was never pending: it fires as soon as its condition holds."""
    labels = _labels(alert) | {"alertstate": "pending"}
    return Question(until_s, f"count_over_time({_asked(labels)}[{duration(until_s)}])", {})


def _labels(alert: Alert) -> dict[str, str]:
    return {"alertname": str(alert.kind), "alertstate": "firing"} | alert.labels


def _asked(labels: dict[str, str]) -> str:
    return selector(_ALERTS, {name: labels[name] for name in _TOLD_APART if name in labels})
