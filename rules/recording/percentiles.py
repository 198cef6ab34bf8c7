"""Percentiles of an SLO's clocks, each only from as many requests as it takes to know it.

One sees the 95 % upper bound of a percentile q from 1 / (1 - q) * 3 requests on: 59 for p95,
299 for p99, 2,995 for p99.9. With fewer, the largest value seen says nothing of it.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.windows import FINELY_UP_TO_S, SLOW_S
from tailburn.engine.names import (
    SLO_LABEL,
    SLO_SAMPLED,
    slo_quantile_record,
    slo_view_record,
    slo_worst_record,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.model import QUANTILES, Clock, Rolling, Slo, Tier
from tailburn.rules.chance import enough
from tailburn.rules.model import Rule
from tailburn.rules.promql import duration, number, selector
from tailburn.rules.sources.histograms import Histogram, histogram_of, views_of

SAMPLES: Final = {"p50": 30, "p90": 30, "p95": 60, "p99": 300, "p99.9": 3000}
PUBLISHED: Final = ("p50", "p95", "p99", "p99.9")
WINDOW_S: Final = 5 * burn.MINUTE_S
WINDOW: Final = duration(WINDOW_S)
HOUR: Final = duration(burn.HOUR_S)
_MINUTE: Final = duration(burn.MINUTE_S)
_WORST: Final = "p95"
_LAST: Final = duration(SLOW_S)


def clocks_of(slo: Slo) -> tuple[Clock, ...]:
    """The clocks that the SLO speaks of and its source has a histogram of."""
    named = list(slo.clocks)
    if (slo.consistency_p99_over_p50 is not None or slo.is_batch) and Clock.E2E not in named:
        named.append(Clock.E2E)
    return tuple(clock for clock in named if histogram_of(slo, clock) is not None)


def quick(slo: Slo) -> Iterator[Rule]:
    """The percentiles that pages and scaling rest on."""
    for histogram in _histograms(slo):
        urgent = _urgent(slo, histogram.clock)
        if urgent:
            yield _buckets(histogram)
        yield from (_over_window(histogram, percentile) for percentile in urgent)


def slow(slo: Slo) -> Iterator[Rule]:
    """The other percentiles, those of the last hour, and the worst minute of each window."""
    for histogram in _histograms(slo):
        urgent = _urgent(slo, histogram.clock)
        if not urgent:
            yield _buckets(histogram)
        for percentile in _percentiles(slo, histogram.clock):
            if percentile not in urgent:
                yield _over_window(histogram, percentile)
        own = selector(buckets(histogram, WINDOW), _labels(slo))
        hour = histogram.rates(HOUR) if histogram.is_native else f"avg_over_time({own}[{HOUR}])"
        yield Rule(hour, buckets(histogram, HOUR), labels=_labels(slo))
        for percentile in _of_an_hour(slo, histogram.clock):
            record = slo_quantile_record(histogram.clock, percentile, HOUR)
            own = selector(buckets(histogram, HOUR), _labels(slo))
            yield Rule(_quantile(histogram, percentile, own, burn.HOUR_S, ()), record)
        yield from _worst(histogram)


def views(slo: Slo) -> Iterator[Rule]:
    """The published percentiles along one more dimension at a time."""
    for histogram in _histograms(slo):
        for dimension in views_of(slo):
            record = f"{buckets(histogram, WINDOW)}_by_{dimension}"
            also = (dimension,)
            yield Rule(histogram.rates(WINDOW, also), record, labels=_labels(slo))
            own = selector(record, _labels(slo))
            for percentile in PUBLISHED:
                yield Rule(
                    _quantile(histogram, percentile, own, WINDOW_S, also),
                    slo_view_record(histogram.clock, percentile, dimension),
                )


def came_enough(slo: Slo, clock: Clock, requests_each: float) -> str:
    """The requests of five minutes, where they are so many for each unit of `chance.floor`."""
    histogram = histogram_of(slo, clock)
    assert histogram is not None, "its percentiles are recorded"
    record, chosen = buckets(histogram, WINDOW), _labels(slo)
    came = selector(record, chosen | {"le": "+Inf"})
    if histogram.is_native:
        came = f"histogram_count({selector(record, chosen)})"
    return f"{came} * {WINDOW_S} >= {enough(came, requests_each, is_single=not slo.by)}"


def buckets(histogram: Histogram, window: str) -> str:
    """The name of the recorded rates of its buckets."""
    part = "histogram" if histogram.is_native else "bucket"
    return f"tailburn_slo:{histogram.clock}_{part}:rate{window}"


def _histograms(slo: Slo) -> Iterator[Histogram]:
    return (h for clock in clocks_of(slo) if (h := histogram_of(slo, clock)) is not None)


def _urgent(slo: Slo, clock: Clock) -> tuple[str, ...]:
    """Those that pages and scaling look at."""
    wanted = set(slo.clocks.get(clock, {}).get(Tier.CRITICAL, {}))
    if slo.scale_out is not None and clock is Clock.TTFT:
        wanted.add("p99")
    return tuple(percentile for percentile in QUANTILES if percentile in wanted)


def _of_an_hour(slo: Slo, clock: Clock) -> tuple[str, ...]:
    """p99 is what the days before are compared by; a batch pool's p50 stands below its p99."""
    is_compared = clock is Clock.E2E and slo.consistency_p99_over_p50 is not None
    return ("p50", "p99") if is_compared else ("p99",)


def _percentiles(slo: Slo, clock: Clock) -> tuple[str, ...]:
    """All that are published or promised."""
    promised = {p for thresholds in slo.clocks.get(clock, {}).values() for p in thresholds}
    return tuple(p for p in QUANTILES if p in PUBLISHED or p in promised)


def _buckets(histogram: Histogram) -> Rule:
    labels = _labels(histogram.slo)
    return Rule(histogram.rates(WINDOW), buckets(histogram, WINDOW), labels=labels)


def _over_window(histogram: Histogram, percentile: str) -> Rule:
    own = selector(buckets(histogram, WINDOW), _labels(histogram.slo))
    record = slo_quantile_record(histogram.clock, percentile, WINDOW)
    return Rule(_quantile(histogram, percentile, own, WINDOW_S, ()), record)


def _quantile(
    histogram: Histogram, percentile: str, rates: str, window_s: int, also: tuple[str, ...]
) -> str:
    """The percentile where enough requests came within the window."""
    value = _scaled(histogram, f"histogram_quantile({number(QUANTILES[percentile])}, {rates})")
    came = f"histogram_count({rates})" if histogram.is_native else f'{rates[:-1]},le="+Inf"}}'
    on = f"on ({', '.join((SLO_LABEL, *histogram.slo.by, *also))})"
    return f"{value}\nand {on}\n{came} * {window_s} >= {SAMPLES[percentile]}"


def _worst(histogram: Histogram) -> Iterator[Rule]:
    """The worst minute's p95 since the last evaluation, in the last hour, day and window.

    The longer from the shorter. Four minutes in one expression cost little more than one.
    """
    slo, clock = histogram.slo, histogram.clock
    minute = f"histogram_quantile({number(QUANTILES[_WORST])}, {histogram.rates(_MINUTE)})"
    yield Rule(
        # a minute without requests has no percentile: it is not a number
        f"max_over_time(({_scaled(histogram, minute)} >= 0)[{_LAST}:{_MINUTE}])",
        slo_worst_record(clock, _WORST, _LAST),
        labels=_labels(slo),
    )
    last = selector(slo_worst_record(clock, _WORST, _LAST), _labels(slo))
    yield Rule(f"max_over_time({last}[{HOUR}])", slo_worst_record(clock, _WORST, HOUR))
    longer = {burn.DAY_S, 3 * burn.DAY_S}
    if isinstance(slo.window, Rolling):
        longer.add(burn.window_s(slo.window))
    for window_s in sorted(longer):
        hours = slo_worst_record(clock, _WORST, HOUR)
        if window_s > FINELY_UP_TO_S:
            hours += SLO_SAMPLED
        window = duration(window_s)
        expr = f"max_over_time({selector(hours, _labels(slo))}[{window}])"
        yield Rule(expr, slo_worst_record(clock, _WORST, window))


def seldom_sampled(slo: Slo) -> Iterator[Rule]:
    """The worst minute of the last hour, a few times an hour: of these the longest windows are."""
    if not isinstance(slo.window, Rolling) or burn.window_s(slo.window) <= FINELY_UP_TO_S:
        return
    for histogram in _histograms(slo):
        hour = slo_worst_record(histogram.clock, _WORST, HOUR)
        yield Rule(selector(hour, _labels(slo)), hour + SLO_SAMPLED)


def _scaled(histogram: Histogram, quantile: str) -> str:
    return quantile if histogram.unit_s == 1 else f"{number(histogram.unit_s)} * {quantile}"


def _labels(slo: Slo) -> dict[str, str]:
    return {SLO_LABEL: slo.name}
