"""Stalled queue: requests are there and none finishes. No count of finished ones can see them."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.silences import Stalled, seen_least
from tailburn.engine.names import (
    SLO_IN_FLIGHT_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, EngineSource, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import told
from tailburn.rules.promql import by, duration, selector
from tailburn.rules.sources import engine
from tailburn.rules.sources.engines import engine_of

LEAST_S: Final = 10 * burn.MINUTE_S
_TIMES: Final = 2


def alerts(slo: Slo) -> Iterator[Alert]:
    """One, unless the SLO rests on queries that tell nothing of requests in flight."""
    long_s = patience_s(slo)
    if slo.source is None:
        in_flight, moved = _service(slo, duration(long_s))
    elif isinstance(slo.source, EngineSource):
        in_flight, moved = _engine(slo, slo.source, duration(long_s))
    else:
        return
    window = f"({in_flight})[{duration(long_s)}:1m]"
    # Seen for a moment only, say after a start, nothing is known to wait.
    waited = f"min_over_time({window}) > 0\nand count_over_time({window}) >= {seen_least(long_s)}"
    yield Alert(
        kind=Kind.STALLED,
        severity=Severity.PAGE,
        slo=slo,
        condition="\nunless\n".join((waited, *(f"{counter} > 0" for counter in moved))),
        long_s=long_s,
        short_s=long_s,
        annotations=told(
            slo,
            "requests wait and none finishes",
            f"For {duration(long_s)} there were requests in flight at every moment, and none of "
            "them got on.",
            "requests of which something was seen and that have not finished",
        ),
        in_process=Stalled(long_s),
    )


def patience_s(slo: Slo) -> int:
    """Twice the longest that a request may take, where the SLO says so; 10 min at least."""
    stated = [s for tiers in slo.clocks.get(Clock.E2E, {}).values() for s in tiers.values()]
    if slo.completion is not None:
        stated.append(slo.completion.within_s)
    minutes = round(max(stated, default=0.0) * _TIMES / burn.MINUTE_S)
    return max(LEAST_S, minutes * burn.MINUTE_S)


def _service(slo: Slo, window: str) -> tuple[str, tuple[str, ...]]:
    labels, chosen = by((SLO_LABEL, *slo.by)), {SLO_LABEL: slo.name}
    return (
        f"sum {labels} ({selector(SLO_IN_FLIGHT_METRIC, chosen)})",
        tuple(
            f"sum {labels} (rate({selector(metric, chosen)}[{window}]))"
            for metric in (SLO_REQUESTS_METRIC, SLO_UNMEASURED_METRIC)
        ),
    )


def _engine(slo: Slo, source: EngineSource, window: str) -> tuple[str, tuple[str, ...]]:
    told = engine_of(source)
    gauges = (engine.summed(slo, source, engine.selected(source, g)) for g in told.in_flight)
    return " + ".join(gauges), (engine.rate(slo, source, told.progress, window),)
