"""CLOCK_EXCLUDES_TRAFFIC: a promise about the few requests that have the clock at all."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.names import (
    OBJECTIVE_LABEL,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.model import Kind, Slo, objectives
from tailburn.rules.lint.finding import Finding, field_of, percent, warning
from tailburn.rules.lint.known import Known, Prometheus

CODE: Final = "CLOCK_EXCLUDES_TRAFFIC"
LEAST_RATIO: Final = 0.5


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Requests that are not streamed have no TTFT; of one token, no TPOT: nobody counts them."""
    if known.prometheus is None or slo.source is not None:
        return
    counted = _requests(slo, known.prometheus, SLO_REQUESTS_METRIC)
    unmeasured = _requests(slo, known.prometheus, SLO_UNMEASURED_METRIC)
    everything = max(counted.values(), default=0.0)
    for objective in objectives(slo):
        if objective.kind is not Kind.CLOCK or not everything:
            continue
        seen = counted.get(objective.name, 0.0)
        if seen / everything < LEAST_RATIO:
            lost = unmeasured.get(objective.name, 0.0)
            why = "telemetry is missing" if lost > seen else "not streamed, or too few tokens"
            yield warning(
                CODE,
                slo,
                field_of(objective),
                f"{percent(seen / everything)} of a day's requests count in it",
                f"at least {percent(LEAST_RATIO)} should: the rest has no such clock ({why})",
                "promise E2E or goodput for the rest, or select the requests that have the clock",
            )


def _requests(slo: Slo, prometheus: Prometheus, metric: str) -> dict[str, float]:
    selector = f'{metric}{{{SLO_LABEL}="{slo.name}"}}'
    answer = prometheus.query(f"sum by ({OBJECTIVE_LABEL}) (increase({selector}[1d]))")
    return {sample.labels.get(OBJECTIVE_LABEL, ""): sample.value for sample in answer}
