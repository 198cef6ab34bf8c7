"""The service's own health, for `/metrics`: read when scraped, kept nowhere."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tailburn.app.collecting import Collecting
from tailburn.app.evaluation_health import Health, evaluation_families
from tailburn.app.exposition import RequestSeries
from tailburn.app.scrape_health import scrape_families
from tailburn.app.slo_series import SloSeries
from tailburn.collector.doors.limits import Budget
from tailburn.collector.doors.tally import Tally
from tailburn.engine.names import FATES
from tailburn.engine.store.api import Store

if TYPE_CHECKING:
    from tailburn.collector.scrape.scraper import Scraper


@dataclass(frozen=True)
class Doors:
    """What the doors count, both together."""

    tally: Tally
    budget: Budget


def health_registry(
    doors: Doors,
    series: RequestSeries,
    slo_series: SloSeries,
    shown: Store,
    collecting: Callable[[], Collecting | None],
    ready: Callable[[], bool],
    evaluation: Callable[[], Health],
    leads: Callable[[], bool],
    scraper: "Scraper | None" = None,
) -> CollectorRegistry:
    """A registry of its own; `collecting` is None until the store is open."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(
        _Health(partial(_families, doors, series, slo_series, shown, collecting, ready, leads))
    )
    registry.register(_Health(partial(evaluation_families, evaluation, time.monotonic)))
    if scraper is not None:
        registry.register(_Health(partial(scrape_families, scraper)))
    return registry


class _Health(Collector):
    def __init__(self, families: Callable[[], Iterator[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return self._families()


def _families(
    doors: Doors,
    series: RequestSeries,
    slo_series: SloSeries,
    shown: Store,
    collecting: Callable[[], Collecting | None],
    ready: Callable[[], bool],
    leads: Callable[[], bool],
) -> Iterator[Metric]:
    yield GaugeMetricFamily("tailburn_ready", "1 when the service takes telemetry.", int(ready()))
    yield GaugeMetricFamily(
        "tailburn_tells_people", "1 when incidents are told by this service, 0 when it stands by.",
        int(leads()),
    )  # fmt: skip
    yield from _door_families(doors)
    yield CounterMetricFamily(
        "tailburn_request_series_overflow",
        "Counts of requests that went to the series of others, for lack of room for their own.",
        series.overflowed,
    )
    yield CounterMetricFamily(
        "tailburn_slo_series_overflow",
        "Times that values of an SLO's `by` were counted as others, for lack of room.",
        slo_series.overflowed,
    )
    damaged = {damage.path for damage in shown.damaged()}
    if (opened := collecting()) is not None:
        damaged |= {damage.path for damage in opened.store.damaged()}
        yield from _balance_families(opened)
        yield from _limit_families(opened)
        yield from _log_families(opened)
    yield GaugeMetricFamily(
        "tailburn_store_damaged_segments", "Files left out of answers since the start.",
        len(damaged),
    )  # fmt: skip


def _door_families(doors: Doors) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "tailburn_answers",
        "Exports answered: ok, partial, or why not.",
        labels=["door", "signal", "outcome"],
    )
    for answer, count in list(doors.tally.answers.items()):
        answers.add_metric(list(answer), count)
    yield answers
    kinds = {"wire": doors.tally.wire_bytes, "body": doors.tally.body_bytes}
    received = CounterMetricFamily(
        "tailburn_received_bytes",
        "Bytes of exports: on the wire, and of the body after decompression.",
        labels=["door", "form"],
    )
    for form, by_door in kinds.items():
        for door, count in list(by_door.items()):
            received.add_metric([door, form], count)
    yield received
    yield GaugeMetricFamily(
        "tailburn_in_flight_bytes",
        "Bytes of bodies between the first byte read and the answer.",
        doors.budget.used_bytes,
    )


def _balance_families(opened: Collecting) -> Iterator[Metric]:
    with opened.keeper.lock:
        lines = list(opened.pipeline.balance.lines())
        reasons = dict(opened.pipeline.balance.reasons)
    totals: Counter[str] = Counter()
    for line in lines:
        totals.update(line.fates)
    received = sum(line.received for line in lines)
    yield CounterMetricFamily("tailburn_spans_received", "Spans that came in.", received)
    fates = GaugeMetricFamily(
        "tailburn_spans",
        "What became of the spans received; adds up to tailburn_spans_received_total.",
        labels=["fate"],
    )
    for fate in FATES:
        fates.add_metric([fate], totals[fate])
    yield fates
    by_reason = CounterMetricFamily(
        "tailburn_spans_lost", "Spans not stored, by fate and reason.", labels=["fate", "reason"]
    )
    for (fate, reason), count in reasons.items():
        by_reason.add_metric([fate, reason], count)
    yield by_reason


def _limit_families(opened: Collecting) -> Iterator[Metric]:
    """What bounds cost, apart from whole spans."""
    cut = CounterMetricFamily(
        "tailburn_cut",
        "Parts of spans left out or cut, for being over a limit.",
        labels=["what"],
    )
    dropped = opened.decoder.dropped
    cut.add_metric(["attributes"], dropped.attributes)
    cut.add_metric(["events"], dropped.events)
    cut.add_metric(["values"], dropped.values_cut)
    yield cut
    known = GaugeMetricFamily("tailburn_names", "Distinct names held.", labels=["table"])
    overflow = CounterMetricFamily(
        "tailburn_names_overflow",
        "Names and resources that found no room in their sender's share: shown as unknown.",
        labels=["table"],
    )
    for name, table in (
        ("texts", opened.decoder.dictionary),
        ("resources", opened.decoder.resources),
    ):
        known.add_metric([name], len(table))
        overflow.add_metric([name], table.overflowed)
    yield known
    yield overflow
    yield CounterMetricFamily(
        "tailburn_points_rejected", "Points of metrics that can't be rows.",
        opened.intake.points_rejected,
    )  # fmt: skip


def _log_families(opened: Collecting) -> Iterator[Metric]:
    writer, keeper = opened.writer, opened.keeper
    yield GaugeMetricFamily(
        "tailburn_backlog_bytes", "Bodies durable and not yet worked through.",
        opened.intake.backlog.bytes,
    )  # fmt: skip
    yield GaugeMetricFamily(
        "tailburn_log_bytes", "Size of the write-ahead log.", writer.total_bytes
    )
    yield CounterMetricFamily(
        "tailburn_log_appended_bytes", "Bytes made durable in the log.", writer.appended_bytes
    )
    yield GaugeMetricFamily(
        "tailburn_log_lag_records", "Records of the log that are not worked through yet.",
        max(writer.last_position - keeper.position, 0),
    )  # fmt: skip
    trouble = opened.trouble
    yield GaugeMetricFamily(
        "tailburn_trouble", "1 while bodies or rows can't be written.", int(trouble is not None)
    )
    yield CounterMetricFamily(
        "tailburn_recovered_torn_bytes", "Cut off the log's end at the start.",
        opened.recovered.torn_bytes,
    )  # fmt: skip
    damage = CounterMetricFamily(
        "tailburn_recovered_damage",
        "What the start found damaged in the midst of the log.",
        labels=["what"],
    )
    for what in ("missing_records", "damaged_bytes", "undecodable_records"):
        damage.add_metric([what], getattr(opened.recovered, what))
    yield damage
