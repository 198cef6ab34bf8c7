"""Which bounds the histogram behind a clock has."""

from collections.abc import Iterator
from dataclasses import dataclass

from tailburn.engine.slo.model import Clock, EngineSource, Objective, Slo, objectives
from tailburn.rules.lint.buckets import SHIPPED
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.series import histogram_of, selector_of
from tailburn.rules.sources.engines import engine_of


@dataclass(frozen=True)
class Bounds:
    """Upper bounds in seconds, ascending, without infinity; and who says so."""

    metric: str
    seconds: tuple[float, ...]
    said_by: str

    def around(self, threshold_s: float) -> tuple[float, float] | None:
        """The bounds of the bucket that holds a duration; None above the highest."""
        above = [b for b in self.seconds if b >= threshold_s]
        below = [b for b in self.seconds if b < threshold_s]
        return (below[-1] if below else 0.0, above[0]) if above else None


def bounds_of(slo: Slo, clock: Clock, known: Known) -> Bounds | None:
    """None where no classic histogram stands between a request and its verdict."""
    if not isinstance(slo.source, EngineSource) or slo.source.histogram != "classic":
        return None
    metric = histogram_of(slo.source, clock)
    if metric is None:
        return None
    if known.prometheus is not None:
        buckets = selector_of(slo.source, clock, f"{metric}_bucket")
        answer = known.prometheus.query(f"group by (le) ({buckets})")
        texts = {s.labels.get("le", "") for s in answer} - {"+Inf", ""}
        if texts:
            seconds = sorted({float(text) * engine_of(slo.source).unit_s for text in texts})
            return Bounds(metric, tuple(seconds), "on this Prometheus")
    shipped = SHIPPED.get(metric)
    return None if shipped is None else Bounds(metric, shipped, "as the engine ships it")


def clock_budgets(slo: Slo, known: Known) -> Iterator[tuple[Objective, Clock, float, Bounds]]:
    """Each budget of a clock that a classic histogram measures, with its threshold."""
    for objective in objectives(slo):
        if (clock := objective.clock) is not None and objective.threshold_s is not None:
            bounds = bounds_of(slo, clock, known)
            if bounds is not None:
                yield objective, clock, objective.threshold_s, bounds
