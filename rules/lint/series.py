"""The series of an engine's histograms, as a check asks for them."""

from tailburn.engine.slo.model import Clock, EngineSource
from tailburn.rules.sources.engine import selected
from tailburn.rules.sources.engines import engine_of


def histogram_of(source: EngineSource, clock: Clock) -> str | None:
    """The name of a clock's histogram without `_bucket`; None: the engine measures no such."""
    return engine_of(source).histograms.get(clock)


def selector_of(source: EngineSource, clock: Clock, series: str) -> str:
    """A series of the histogram with the user's matchers, and those that the clock needs."""
    return selected(source, series, engine_of(source).matchers.get(clock, ""))
