"""SERIES_MISSING and LABEL_MISSING: rules over series that a live Prometheus does not have."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
)
from tailburn.engine.slo.model import EngineSource, QuerySource, Slo, objectives
from tailburn.rules.lint.finding import Finding, error, field_of, warning
from tailburn.rules.lint.known import Known, Prometheus
from tailburn.rules.lint.series import histogram_of, selector_of
from tailburn.rules.sources.query import WINDOW

CODE: Final = "SERIES_MISSING"
CODE_LABEL: Final = "LABEL_MISSING"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """An alert over a series that is not there is silent for ever."""
    if known.prometheus is None:
        return
    if isinstance(slo.source, EngineSource):
        yield from _of_engine(slo, slo.source, known.prometheus)
    elif isinstance(slo.source, QuerySource):
        yield from _of_queries(slo, slo.source, known.prometheus)
    else:
        yield from _of_service(slo, known.prometheus)


def _of_service(slo: Slo, prometheus: Prometheus) -> Iterator[Finding]:
    selector = f'{SLO_REQUESTS_METRIC}{{{SLO_LABEL}="{slo.name}"}}'
    labels = ", ".join((OBJECTIVE_LABEL, DEFINITION_LABEL, *slo.by))
    answer = prometheus.query(f"group by ({labels}) ({selector})")
    for objective in objectives(slo):
        found = [s for s in answer if s.labels.get(OBJECTIVE_LABEL) == objective.name]
        if not found:
            remedy = "start the service with this file (serve --slo), and let Prometheus scrape it"
            given = f'{selector[:-1]}, {OBJECTIVE_LABEL}="{objective.name}"}}'
            yield error(CODE, slo, field_of(objective), given, "is not there", remedy)
            continue
        for dimension in slo.by:
            if not any(sample.labels.get(dimension) for sample in found):
                yield error(
                    CODE_LABEL,
                    slo,
                    "spec.by",
                    dimension,
                    f"no series of {objective.name} has this label",
                    "the service counts another version of this file: restart it with this one",
                )


def _of_engine(slo: Slo, source: EngineSource, prometheus: Prometheus) -> Iterator[Finding]:
    for clock in slo.clocks:
        metric = histogram_of(source, clock)
        if metric is None:
            continue
        series = f"{metric}_bucket" if source.histogram == "classic" else metric
        chosen = selector_of(source, clock, series)
        if prometheus.query(f"count({chosen})"):
            continue
        if prometheus.query(f"count({series})"):
            limit = "none has the labels of spec.source.match"
            remedy = "look at the labels of the job on the Prometheus' page of targets"
            yield error(CODE_LABEL, slo, "spec.source.match", chosen, limit, remedy)
        else:
            field, limit = f"spec.clocks.{clock}", "is not there"
            remedy = f"scrape {source.engine}'s metrics, and look which version emits this name"
            yield error(CODE, slo, field, series, limit, remedy)


def _of_queries(slo: Slo, source: QuerySource, prometheus: Prometheus) -> Iterator[Finding]:
    for field, query in (("total", source.total), ("bad", source.bad)):
        expr = WINDOW.sub("1h", query)
        if not prometheus.query(expr):
            tell = error if field == "total" else warning
            limit = "answers nothing over the last hour"
            yield tell(
                CODE, slo, f"spec.source.{field}", expr, limit, "try it by hand, and mend it"
            )
