"""What scrapes show of a clock's histogram, and which percentiles are in it.

Durations are fed so that a quantile is known well: every value has a narrow bucket of its own,
from 1 % below it to 1 % above.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.names import CLOCK_METRICS, VANTAGE_LABEL
from tailburn.engine.slo.course import Stretch
from tailburn.engine.slo.model import Clock, EngineSource, Slo
from tailburn.rules.promql import number
from tailburn.rules.sources.engines import engine_of
from tailburn.rules.testing.counters import counted
from tailburn.rules.testing.engine_inputs import satisfying, source_labels
from tailburn.rules.testing.labels import troubled
from tailburn.rules.testing.unit import Input

HALF_WIDTH: Final = 0.01


@dataclass(frozen=True)
class Phase:
    """Requests for so many seconds, each of one of these durations: share by seconds."""

    for_s: int
    requests_per_s: float
    durations: Mapping[float, float]


def histogram_inputs(
    slo: Slo, clock: Clock, phases: Sequence[Phase], interval_s: int
) -> Iterator[Input]:
    """The buckets of the label set in trouble, cumulative as they are scraped."""
    metric, labels, unit_s = _series(slo, clock)
    stretches = [Stretch(p.for_s, 0.0, p.requests_per_s) for p in phases]
    values = {value for phase in phases for value in phase.durations}
    for bound in sorted({edge for value in values for edge in edges(value)}):
        shares = [sum(s for v, s in p.durations.items() if edges(v)[1] <= bound) for p in phases]
        le = {"le": number(bound / unit_s)}
        yield Input(metric, labels | le, counted(stretches, shares, interval_s, ()))
    everything = [1.0] * len(phases)
    yield Input(metric, labels | {"le": "+Inf"}, counted(stretches, everything, interval_s, ()))


def edges(value_s: float) -> tuple[float, float]:
    """The bounds of the bucket of a duration."""
    return round(value_s * (1 - HALF_WIDTH), 9), round(value_s * (1 + HALF_WIDTH), 9)


def quantile(durations: Mapping[float, float], q: float) -> float:
    """What `histogram_quantile` says of such a histogram: linear within the bucket of rank q."""
    below = 0.0
    for value_s, share in sorted(durations.items()):
        if share and below + share >= q:
            low_s, high_s = edges(value_s)
            return low_s + (high_s - low_s) * (q - below) / share
        below += share
    raise ValueError(f"shares of {durations} sum to less than {q}")


def _series(slo: Slo, clock: Clock) -> tuple[str, dict[str, str], float]:
    if isinstance(slo.source, EngineSource):
        engine = engine_of(slo.source)
        labels = source_labels(slo.source, troubled(slo))
        labels |= satisfying(engine.matchers.get(clock, ""))
        return f"{engine.histograms[clock]}_bucket", labels, engine.unit_s
    name = CLOCK_METRICS["itl_max" if clock is Clock.ITL else str(clock)][0]
    labels = dict(slo.select) | troubled(slo)
    if clock in (Clock.TTFT, Clock.TPOT, Clock.E2E):
        labels[VANTAGE_LABEL] = slo.vantage
    return f"{name}_bucket", labels, 1.0
