"""Rules by which a Prometheus looks at the service itself: whoever is dead pages nobody."""

from typing import Final

from tailburn.engine.names import SEVERITY_LABEL
from tailburn.engine.slo.burn import Severity
from tailburn.rules.model import Group, Rule
from tailburn.rules.promql import selector

WATCHDOG: Final = "TailburnWatchdog"
"""It fires always: a receiver outside pages where its notifications end."""
ABSENT: Final = "TailburnAbsent"
NOT_READY: Final = "TailburnNotReady"
STALLED: Final = "TailburnEvaluationStalled"
NOTHING: Final = "TailburnEvaluatesNothing"
NOBODY: Final = "TailburnTellsNobody"

_MINUTE_S: Final = 60


def watching(job: str) -> Group:
    """`job`: the label that the scrape of the service has."""
    up = selector("up", {"job": job})
    ready = selector("tailburn_ready", {"job": job})
    tells = selector("tailburn_tells_people", {"job": job})
    behind = selector("tailburn_evaluation_behind", {"job": job})
    alerts = selector("tailburn_evaluation_alerts", {"job": job})
    return Group(
        "tailburn-itself",
        _MINUTE_S,
        (
            _rule(WATCHDOG, "vector(1)", 0, "none", "It fires always; page where it ends"),
            _rule(ABSENT, f"absent({up} == 1)", 3, Severity.PAGE,
                  "No service is scraped: nobody is told of anything"),
            _rule(NOT_READY, f"{ready} == 0", 10, Severity.PAGE,
                  "The service does not take telemetry; /readyz says why"),
            _rule(STALLED, f"{behind} == 1", 3, Severity.PAGE,
                  "Alerts are not evaluated; the log of the service says why"),
            _rule(NOBODY, f"max({tells}) == 0", 1, Severity.PAGE,
                  "No service of the pair tells people; is their database there?"),
            _rule(NOTHING, f"{alerts} == 0 and on (job, instance) {ready} == 1", 15,
                  Severity.TICKET, "The service has no SLOs"),
        ),
    )  # fmt: skip


def _rule(alert: str, expr: str, for_minutes: int, severity: str, summary: str) -> Rule:
    return Rule(
        expr,
        alert=alert,
        for_s=for_minutes * _MINUTE_S,
        labels={SEVERITY_LABEL: str(severity)},
        annotations={"summary": summary},
    )
