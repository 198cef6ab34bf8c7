"""BUCKETS_TOO_COARSE: buckets wider than the factor that a rule must see."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.lint.bounds import bounds_of
from tailburn.rules.lint.finding import Finding, span, warning
from tailburn.rules.lint.known import Known

CODE: Final = "BUCKETS_TOO_COARSE"
_COMPARED: Final = (Clock.TTFT, Clock.TPOT)  # the clocks that are compared with their past


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """A quantile is anywhere within its bucket: across one bucket it moves without a cause."""
    if slo.regression is None:
        return
    for clock in _COMPARED:
        thresholds = {s for tier in slo.clocks.get(clock, {}).values() for s in tier.values()}
        bounds = bounds_of(slo, clock, known) if thresholds else None
        if bounds is None:
            continue
        steps = [a for s in sorted(thresholds) if (a := bounds.around(s)) and a[0] > 0]
        if not steps:
            continue
        low_s, high_s = max(steps, key=lambda step: step[1] / step[0])
        if high_s / low_s > slo.regression.ratio:
            yield warning(
                CODE,
                slo,
                "spec.regression.ratio",
                f"{slo.regression.ratio:g}",
                f"{bounds.metric} steps from {span(low_s)} to {span(high_s)} "
                f"({bounds.said_by}), by {high_s / low_s:.3g} times: a p99 between them "
                "moves that far without a cause",
                "give the engine finer bounds there (steps of at most "
                f"{slo.regression.ratio:g}), use native histograms, or send spans to the service",
            )
