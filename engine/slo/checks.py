"""What the fields of an SLO say against each other; each check is one function of `CHECKS`."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from tailburn.engine.problems import Problem
from tailburn.engine.slo.building import thresholds_s
from tailburn.engine.slo.document import Document, Path
from tailburn.engine.slo.faults import shortened
from tailburn.engine.slo.model import QUANTILES, Clock, Tier
from tailburn.engine.slo.quantities import write_time
from tailburn.engine.slo.spec import Spec


@dataclass(frozen=True)
class Subject:
    """A document's promise, and the paths of its values that are faulty and left out of it."""

    spec: Spec
    document: Document
    broken: frozenset[Path]

    def problem(self, path: Path, wanted: str) -> Problem:
        """A fault of the value at this path below `spec`."""
        value = self.document.data
        for step in (path := ("spec", *path)):
            value = value.get(step) if isinstance(value, dict) else None
        return self.document.problem(path, shortened(value), wanted)

    def is_whole(self, *path: str) -> bool:
        """Whether nothing at or above or below this path below `spec` is faulty."""
        own = ("spec", *path)
        return not any(x[: len(own)] == own or own[: len(x)] == x for x in self.broken)

    def thresholds_s(self, clock: Clock, tier: Tier) -> dict[str, float]:
        """Seconds by percentile."""
        tiers = getattr(self.spec.clocks, clock)
        return thresholds_s(getattr(tiers, tier)) if tiers is not None else {}


def contradictions(subject: Subject) -> Iterator[Problem]:
    """All that is wrong with an SLO whose single values are right."""
    for check in CHECKS:
        yield from check(subject)


def percentiles_rise(subject: Subject) -> Iterator[Problem]:
    """More of the requests take longer, in every tier."""
    for clock in Clock:
        for tier in Tier:
            given = subject.thresholds_s(clock, tier)
            for (low, low_s), (high, high_s) in pairwise(given.items()):
                if high_s < low_s:
                    yield subject.problem(
                        ("clocks", clock, tier, high),
                        f"is below its {low}, {write_time(low_s)}; want at least that",
                    )


def tiers_rise(subject: Subject) -> Iterator[Problem]:
    """Target, acceptable and critical, each no better than the one before."""
    for clock in Clock:
        by_tier = {tier: subject.thresholds_s(clock, tier) for tier in Tier}
        for percentile in QUANTILES:
            given = [(t, by_tier[t][percentile]) for t in Tier if percentile in by_tier[t]]
            for (better, better_s), (worse, worse_s) in pairwise(given):
                if worse_s < better_s:
                    yield subject.problem(
                        ("clocks", clock, worse, percentile),
                        f"is below the {better} {percentile}, {write_time(better_s)}; "
                        "want at least that",
                    )


def goodput_has_clocks(subject: Subject) -> Iterator[Problem]:
    """Goodput joins the acceptable p95 clocks; with none it would be availability."""
    has_p95 = any("p95" in subject.thresholds_s(clock, Tier.ACCEPTABLE) for clock in Clock)
    if subject.spec.goodput is not None and not has_p95 and subject.is_whole("clocks"):
        yield subject.problem(
            ("goodput",), "joins no clock; give ttft or tpot an acceptable p95, or use availability"
        )


def scale_out_has_a_limit(subject: Subject) -> Iterator[Problem]:
    """Scale-out is a share of the acceptable p99 TTFT."""
    has_p99 = "p99" in subject.thresholds_s(Clock.TTFT, Tier.ACCEPTABLE)
    if subject.spec.scale_out is not None and not has_p99 and subject.is_whole("clocks", "ttft"):
        yield subject.problem(
            ("scale_out",), "is a share of the acceptable p99 TTFT; set clocks.ttft.acceptable.p99"
        )


def one_window(subject: Subject) -> Iterator[Problem]:
    """Rolling or calendar, the latter in a zone that there is."""
    spec = subject.spec
    if spec.calendar is not None and spec.window is not None:
        yield subject.problem(("calendar",), "stands beside a window; remove one of the two")
    if spec.time_zone is None:
        return
    if spec.calendar is None and subject.is_whole("calendar"):
        yield subject.problem(("time_zone",), "is for a calendar; add `calendar: month`")
    try:
        ZoneInfo(spec.time_zone)
    except (KeyError, OSError, ValueError):  # not there, a folder of zones, a path
        yield subject.problem(("time_zone",), "is no time zone; want one such as Europe/Berlin")


def labels_differ_from_by(subject: Subject) -> Iterator[Problem]:
    """A series can't have one label twice."""
    labels = subject.document.data.get("metadata", {}).get("labels", {})
    for name in subject.spec.by:
        if isinstance(labels, dict) and name in labels:
            path = ("metadata", "labels", name)
            wanted = f"is a dimension in spec.by too; rename the label, say my_{name}"
            yield subject.document.problem(path, name, wanted)


def queries_differ(subject: Subject) -> Iterator[Problem]:
    """Were they the same, every request would be bad."""
    source = subject.spec.source
    if source is not None and source.queries and source.queries.bad == source.queries.total:
        yield subject.problem(
            ("source", "queries", "bad"), "is the same as total; want the bad requests alone"
        )


def by_is_open(subject: Subject) -> Iterator[Problem]:
    """A budget for each value of a dimension needs more than one value."""
    by = subject.spec.by
    for i, dimension in enumerate(by):
        if dimension in subject.spec.select:
            wanted = f"is fixed by spec.select.{dimension}; remove it from one of the two"
            yield subject.problem(("by",), f"{dimension} {wanted}")
        if dimension in by[:i]:
            yield subject.problem(("by",), f"{dimension} is given twice; remove one of the two")


def source_is_one(subject: Subject) -> Iterator[Problem]:
    """An engine's histograms or two queries."""
    source = subject.spec.source
    if source is None or not subject.is_whole("source"):
        return
    if (source.engine is None) == (source.queries is None):
        said = "an engine and queries" if source.engine else "neither an engine nor queries"
        yield subject.problem(("source",), f"names {said}; want one of the two")


def queries_know_no_clock(subject: Subject) -> Iterator[Problem]:
    """Two queries tell how many requests are bad, and nothing else of them."""
    spec = subject.spec
    if spec.source is None or spec.source.queries is None:
        return
    fields = (
        "select", "clocks", "goodput", "completion", "consistency", "regression", "scale_out",
        "exclude",
    )  # fmt: skip
    for name in fields:
        if name in spec.model_fields_set:
            yield subject.problem(
                (name,), "can't be told by source.queries; remove it, or count it in the queries"
            )
    if spec.availability is None and subject.is_whole("availability"):
        yield subject.problem(("source", "queries"), "have no objective; set spec.availability")


def engines_know_less(subject: Subject) -> Iterator[Problem]:
    """Histograms of one clock each, with the engine's own labels: what none of them can tell."""
    spec = subject.spec
    if spec.source is None or spec.source.engine is None:
        return
    if spec.select:
        yield subject.problem(
            ("select",),
            f"names dimensions that {spec.source.engine}'s histograms don't have; choose its "
            "series by their labels in source.match",
        )
    if spec.goodput is not None:
        yield subject.problem(
            ("goodput",),
            f"needs each request's clocks together, which {spec.source.engine}'s histograms "
            "don't tell; remove it, or the source",
        )
    if "exclude" in spec.model_fields_set:
        yield subject.problem(
            ("exclude",),
            f"can't be taken out of {spec.source.engine}'s histograms; remove it, or the source",
        )


def something_is_promised(subject: Subject) -> Iterator[Problem]:
    """An SLO without objective would never alert, and always be met."""
    spec = subject.spec
    if subject.broken:
        return
    promises = (
        spec.availability, spec.goodput, spec.completion, spec.consistency, spec.regression,
        spec.scale_out,
    )  # fmt: skip
    judged = (Tier.ACCEPTABLE, Tier.CRITICAL)
    has_clock = any(subject.thresholds_s(clock, tier) for clock in Clock for tier in judged)
    if not has_clock and all(promise is None for promise in promises):
        yield subject.problem(
            (), "promises nothing; set availability, goodput, or a clock's acceptable p95"
        )


CHECKS: Final = (
    percentiles_rise,
    tiers_rise,
    goodput_has_clocks,
    scale_out_has_a_limit,
    one_window,
    by_is_open,
    source_is_one,
    labels_differ_from_by,
    queries_differ,
    queries_know_no_clock,
    engines_know_less,
    something_is_promised,
)
