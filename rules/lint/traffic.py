"""How many requests there are: as told, or as a live Prometheus counted over a day."""

from tailburn.engine.names import OBJECTIVE_LABEL, SLO_LABEL, SLO_REQUESTS_METRIC
from tailburn.engine.slo.model import Clock, EngineSource, QuerySource, Slo
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.series import histogram_of, selector_of
from tailburn.rules.sources.query import WINDOW


def rate_per_s(slo: Slo, known: Known) -> float | None:
    """Requests/s of the quietest label set that has any; None when nobody knows."""
    if known.rate_per_s is not None:
        return known.rate_per_s
    counted = None if known.prometheus is None else _rate_query(slo)
    if known.prometheus is None or counted is None:
        return None
    return min((s.value for s in known.prometheus.query(f"({counted}) > 0")), default=None)


def _rate_query(slo: Slo) -> str | None:
    if isinstance(slo.source, QuerySource):
        return WINDOW.sub("1d", slo.source.total)
    if isinstance(slo.source, EngineSource):
        return next((q for clock in slo.clocks if (q := _engine_query(slo.source, clock))), None)
    labels = ", ".join((OBJECTIVE_LABEL, *slo.by))
    selector = f'{SLO_REQUESTS_METRIC}{{{SLO_LABEL}="{slo.name}"}}'
    return f"sum by ({labels}) (rate({selector}[1d]))"


def _engine_query(source: EngineSource, clock: Clock) -> str | None:
    metric = histogram_of(source, clock)
    return metric and f"sum (rate({selector_of(source, clock, f'{metric}_count')}[1d]))"
