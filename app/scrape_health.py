"""How reading from engines and hosts goes, for `/metrics`."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from tailburn.collector.scrape.errors import Reason
from tailburn.collector.scrape.tally import BOUNDS_S

if TYPE_CHECKING:
    from tailburn.collector.scrape.scraper import Scraper

MOST_TARGETS: Final = 1_000
"""Targets with series of their own; those past it are in the totals only."""


def scrape_families(scraper: "Scraper") -> Iterator[Metric]:
    """Targets by how they are, and what became of their samples."""
    tally = scraper.tally
    standings = list(tally.targets.values())
    counts = Counter(standing.reason for standing in standings)
    targets = GaugeMetricFamily(
        "tailburn_targets", "Targets that are read, by how the last try went.", labels=["reason"]
    )
    for reason in Reason:
        targets.add_metric([str(reason)], counts[reason])
    yield targets
    up = GaugeMetricFamily(
        "tailburn_target_up", "1 for a target that was read.", labels=["target", "job"]
    )
    took = GaugeMetricFamily(
        "tailburn_target_read_seconds",
        "How long the last try took.",
        labels=["target", "job"],
    )
    for standing in standings[:MOST_TARGETS]:
        labels = [standing.instance, standing.job]
        up.add_metric(labels, int(standing.reason is Reason.UP))
        took.add_metric(labels, standing.duration_s)
    yield from (up, took)
    yield _durations(tally.duration_buckets, tally.duration_sum_s)
    reads = CounterMetricFamily(
        "tailburn_target_reads", "Tries to read a target, by how they went.", labels=["reason"]
    )
    for reason, count in list(tally.reads.items()):
        reads.add_metric([str(reason)], count)
    yield reads
    samples = CounterMetricFamily(
        "tailburn_target_samples",
        "Samples of all answers: kept, of no known name, or why left out.",
        labels=["fate"],
    )
    for fate, count in list(tally.samples.items()):
        samples.add_metric([str(fate)], count)
    yield samples
    yield GaugeMetricFamily(
        "tailburn_target_lists_failing",
        "Lists of targets that can't be had at the moment; the ones before are in use.",
        len(scraper.discovery.problems),
    )


def _durations(counts: list[int], total_s: float) -> Metric:
    total, buckets = 0, []
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    family = HistogramMetricFamily(
        "tailburn_target_duration_seconds", "How long reading one target took."
    )
    family.add_metric([], buckets, total_s)
    return family
