"""The clocks' histograms of an SLO's requests, in seconds: the service's own, or an engine's."""

from dataclasses import dataclass
from typing import Final

from tailburn.engine.names import CLOCK_METRICS, VANTAGE_LABEL
from tailburn.engine.schema import ROLLUP_DIMENSIONS
from tailburn.engine.slo.model import Clock, EngineSource, Slo
from tailburn.rules.promql import by, selector
from tailburn.rules.sources import engine
from tailburn.rules.sources.engines import engine_of

_METRICS: Final = {
    clock: CLOCK_METRICS["itl_max" if clock is Clock.ITL else str(clock)][0] for clock in Clock
}
_WITH_VANTAGE: Final = (Clock.TTFT, Clock.TPOT, Clock.E2E)


@dataclass(frozen=True)
class Histogram:
    """What a clock's distribution is read from."""

    slo: Slo
    clock: Clock

    @property
    def unit_s(self) -> float:
        """Seconds of one unit of its bounds."""
        source = self.slo.source
        return engine_of(source).unit_s if isinstance(source, EngineSource) else 1.0

    @property
    def is_native(self) -> bool:
        """Whether one series holds all buckets; promtool 2.42 can check these for syntax only."""
        source = self.slo.source
        return isinstance(source, EngineSource) and source.histogram == "native"

    def rates(self, window: str, also: tuple[str, ...] = ()) -> str:
        """Rates of the buckets over a window, by the SLO's dimensions and some more."""
        source = self.slo.source
        if isinstance(source, EngineSource):
            told = engine_of(source)
            name = told.histograms[self.clock] + ("" if self.is_native else "_bucket")
            needed = told.matchers.get(self.clock, "")
            rate = f"rate({engine.selected(source, name, needed)}[{window}])"
            return engine.summed(self.slo, source, rate, also, le=not self.is_native)
        return f"sum {by((*self.slo.by, *also, 'le'))} (rate({self.own()}[{window}]))"

    def own(self, **equal: str) -> str:
        """The buckets that the service itself exposes, of some more values of labels."""
        chosen = dict(self.slo.select)
        if self.clock in _WITH_VANTAGE:
            chosen[VANTAGE_LABEL] = self.slo.vantage
        return selector(f"{_METRICS[self.clock]}_bucket", chosen | equal)


def histogram_of(slo: Slo, clock: Clock) -> Histogram | None:
    """None where the source has none, or none that can be told apart as the SLO wants it."""
    if slo.source is None:
        wanted = {*slo.select, *slo.by}
        return Histogram(slo, clock) if wanted <= set(ROLLUP_DIMENSIONS) else None
    if isinstance(slo.source, EngineSource) and clock in engine_of(slo.source).histograms:
        return Histogram(slo, clock)
    return None


def views_of(slo: Slo) -> tuple[str, ...]:
    """The dimensions that dashboards look along: model, replica (and so its GPUs), request type."""
    known = ("model", "replica", "request_type") if slo.source is None else ("model", "replica")
    return tuple(dimension for dimension in known if dimension not in slo.by)
