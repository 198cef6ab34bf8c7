"""BY_CARDINALITY: so many budgets that nobody reads them and Prometheus labours over them."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.names import SLO_LABEL, SLO_REQUESTS_METRIC
from tailburn.engine.slo.model import Slo, objectives
from tailburn.rules.lint.finding import Finding, warning
from tailburn.rules.lint.known import Known

CODE: Final = "BY_CARDINALITY"
MOST_PAIRS: Final = 200
"""Pairs of objective and label set that one Prometheus evaluates within its time."""
_GROWS_WITH: Final = {
    "tenant": "customers",
    "client": "clients",
    "replica": "replicas, and with every restart",
    "node": "machines",
    "gpu": "GPUs",
    "lora": "adapters",
    "route": "routes",
}


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Counted where a Prometheus can be asked; else told by the dimension's nature."""
    pairs = _pairs(slo, known)
    if pairs is not None:
        if pairs > MOST_PAIRS:
            yield _finding(slo, f"{pairs:,} pairs of objective and label set")
        return
    for dimension in slo.by:
        if what := _GROWS_WITH.get(dimension):
            yield _finding(slo, f"a budget for each {dimension}: they grow with the {what}")


def _finding(slo: Slo, given: str) -> Finding:
    return warning(
        CODE,
        slo,
        "spec.by",
        f"[{', '.join(slo.by)}]",
        f"{given}; up to {MOST_PAIRS} pairs are evaluated in good time",
        "leave the dimension to dashboards, or select its few values that have a promise",
    )


def _pairs(slo: Slo, known: Known) -> int | None:
    if known.prometheus is None or not slo.by or slo.source is not None:
        return None
    labels = ", ".join((SLO_LABEL, *slo.by))
    counted = f'count by ({labels}) ({SLO_REQUESTS_METRIC}{{{SLO_LABEL}="{slo.name}"}})'
    sets = len(known.prometheus.query(counted))
    return sets * len(objectives(slo)) if sets else None
