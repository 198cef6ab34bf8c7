"""Series of an SLO and their counts, and how `/metrics` shows them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tailburn.app.tenants import is_seen_by
from tailburn.app.text_format import head, labels_text
from tailburn.engine.excess import PLACES
from tailburn.engine.names import (
    DEFINITION_LABEL,
    HOP_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_LABEL,
    SLO_LATE_METRIC,
    SLO_PERIOD_BAD_METRIC,
    SLO_PERIOD_REQUESTS_METRIC,
    SLO_REQUESTS_METRIC,
    SLO_SLOW_SECONDS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import Calendar, Slo
from tailburn.engine.slo.slowness import Slowness
from tailburn.engine.store.state.shown import SeriesKey

_COUNTERS: Final = {
    SLO_REQUESTS_METRIC: "Requests with a verdict; the first version of each.",
    SLO_BAD_METRIC: "Requests of these that were bad.",
    SLO_UNMEASURED_METRIC: "Requests without a verdict: what it takes is missing.",
    SLO_LATE_METRIC: "Verdicts counted above that a later version of a request changed.",
}
_GAUGES: Final = {
    SLO_PERIOD_REQUESTS_METRIC: (0, "Requests with a verdict since the calendar window began."),
    SLO_PERIOD_BAD_METRIC: (1, "Bad ones of these."),
}
_DEADLINES: Final = {
    SLO_DEADLINE_REQUESTS_METRIC: (0, "Requests with a deadline by load and prompt length."),
    SLO_DEADLINE_MISSED_METRIC: (1, "Requests of these that missed it."),
}


@dataclass
class Period:
    """The counts of a calendar window; those of one that has ended are gone."""

    begin_ns: int = 0
    end_ns: int = 0
    requests: int = 0
    bad: int = 0

    def counts(self, now_ns: int) -> tuple[int, int]:
        return (self.requests, self.bad) if now_ns < self.end_ns else (0, 0)


@dataclass
class Series:
    """One objective under one definition, for one combination of the values of `by`."""

    slo: Slo
    key: SeriesKey
    counts: list[int] = field(default_factory=lambda: [0] * len(_COUNTERS))  # in that order
    period: Period = field(default_factory=Period)
    slowness: Slowness | None = None  # of the budget that says which requests are slow

    @cached_property
    def by(self) -> str:
        """As the tables of the store have it."""
        return json.dumps(dict(self.key.by))

    @cached_property
    def labels(self) -> str:
        return labels_text(
            {
                SLO_LABEL: self.key.slo,
                OBJECTIVE_LABEL: self.key.objective,
                DEFINITION_LABEL: self.key.definition,
                **dict(self.key.by),
            }
        )

    @property
    def is_of_deadlines(self) -> bool:
        """Whether it counts no budget but who was late for the load there was."""
        return self.key.objective == DEADLINE

    def is_seen_by(self, tenant: str | None) -> bool:
        """Whether it is shown to a reader of this tenant; None reads of all."""
        return is_seen_by(tenant, self.slo.select.get("tenant"), self.key.by)


def series_text(seen: Sequence[Series], zero: set[SeriesKey], now_ns: int) -> str:
    """In the Prometheus text format; those of `zero` as they were before anything counted."""
    budgets = [series for series in seen if not series.is_of_deadlines]
    return "".join(
        [
            *_counters(budgets, zero),
            *_periods(budgets, now_ns),
            *_slow(budgets, zero),
            *_late([series for series in seen if series.is_of_deadlines], zero),
        ]
    )


def _counters(seen: Sequence[Series], zero: set[SeriesKey]) -> Iterator[str]:
    for index, (metric, help_text) in enumerate(_COUNTERS.items()):
        yield head(metric, "counter", help_text)
        for series in seen:
            value = 0 if series.key in zero else series.counts[index]
            yield f"{metric}{{{series.labels}}} {value}\n"


def _periods(seen: Sequence[Series], now_ns: int) -> Iterator[str]:
    of_calendars = [series for series in seen if isinstance(series.slo.window, Calendar)]
    if not of_calendars:
        return
    for metric, (index, help_text) in _GAUGES.items():
        yield head(metric, "gauge", help_text)
        for series in of_calendars:
            yield f"{metric}{{{series.labels}}} {series.period.counts(now_ns)[index]}\n"


def _slow(seen: Sequence[Series], zero: set[SeriesKey]) -> Iterator[str]:
    """Seconds over the baseline, of every hop, so that one that gets slow is not born above 0."""
    slow = [(series, series.slowness) for series in seen if series.slowness is not None]
    if not slow:
        return
    by_hop = "What slow requests took over the baseline, by hop."
    yield head(SLO_SLOW_SECONDS_METRIC, "counter", by_hop)
    for series, slowness in slow:
        for hop, ns in zip(PLACES, slowness.slow_ns.tolist(), strict=True):
            labels = labels_text({SLO_LABEL: series.key.slo, HOP_LABEL: hop, **dict(series.key.by)})
            seconds = 0.0 if series.key in zero else ns / 1e9
            yield f"{SLO_SLOW_SECONDS_METRIC}{{{labels}}} {seconds}\n"
    yield head(SLO_EXCESS_SECONDS_METRIC, "counter", "The same, of all hops together.")
    for series, slowness in slow:
        labels = labels_text({SLO_LABEL: series.key.slo, **dict(series.key.by)})
        seconds = 0.0 if series.key in zero else slowness.excess_ns / 1e9
        yield f"{SLO_EXCESS_SECONDS_METRIC}{{{labels}}} {seconds}\n"


def _late(seen: Sequence[Series], zero: set[SeriesKey]) -> Iterator[str]:
    for metric, (index, help_text) in _DEADLINES.items() if seen else ():
        yield head(metric, "counter", help_text)
        for series in seen:
            labels = labels_text({SLO_LABEL: series.key.slo, **dict(series.key.by)})
            value = 0 if series.key in zero else series.counts[index]
            yield f"{metric}{{{labels}}} {value}\n"
