"""The series of budgets that a Prometheus would scrape, for a course of traffic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tailburn.engine.evaluation.windows import SAMPLED_S
from tailburn.engine.names import (
    SLO_BAD_METRIC,
    SLO_BAD_RATE_RECORD,
    SLO_REQUESTS_METRIC,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo.course import Course
from tailburn.engine.slo.model import EngineSource, Objective, QuerySource, Slo
from tailburn.rules.recording.rates import sampled_record
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.testing.counters import counted, levels
from tailburn.rules.testing.engine_inputs import engine_counters
from tailburn.rules.testing.labels import identity, troubled, well
from tailburn.rules.testing.query_inputs import query_counters
from tailburn.rules.testing.unit import Input


@dataclass(frozen=True)
class Scrapes:
    """How the courses of an SLO's budgets are seen: each so many seconds."""

    interval_s: int
    courses: Mapping[str, Course]  # by objective, all of the same traffic
    resets: tuple[int, ...] = ()

    @property
    def are_sparse(self) -> bool:
        """Too far apart for the rates over 5 min that long windows are means of.

        These are given as if they had been recorded: a course of days stays a quick test.
        """
        return self.interval_s > SAMPLED_S


@dataclass(frozen=True)
class Fed:
    """What is scraped, and the objectives whose course it shows.

    Two objectives may rest on the same series, say two percentiles with one threshold: it can
    show the course of one only.
    """

    inputs: tuple[Input, ...]
    objectives: frozenset[str]


def inputs_of(slo: Slo, scrapes: Scrapes) -> Fed:
    """Counters of the label set in trouble, and of one beside it where all is well."""
    found: dict[str, Input] = {}
    shown: set[str] = set()
    for objective in budgets_of(slo):
        inputs = {one.series: one for one in _inputs(slo, objective, scrapes)}
        if inputs and all(found.get(name, one) == one for name, one in inputs.items()):
            found |= inputs
            shown.add(objective.name)
    return Fed(tuple(found.values()), frozenset(shown))


def _inputs(slo: Slo, objective: Objective, scrapes: Scrapes) -> Iterator[Input]:
    stretches = scrapes.courses[objective.name].stretches
    bad = [stretch.bad_ratio for stretch in stretches]
    for by, shares in ((troubled(slo), bad), (well(slo), [0.0] * len(bad))):
        if by is None:
            continue
        counters = list(_counters(slo, objective, by, shares))
        for metric, labels, counts in counters:
            values = counted(stretches, counts, scrapes.interval_s, scrapes.resets)
            yield Input(metric, labels, values)
        if scrapes.are_sparse and counters:
            everything = [1.0] * len(bad)
            for record, counts in (
                (SLO_TOTAL_RATE_RECORD, everything),
                (SLO_BAD_RATE_RECORD, shares),
            ):
                sampled = sampled_record(record, SAMPLED_S)
                values = levels(stretches, counts, scrapes.interval_s)
                yield Input(sampled, identity(slo, objective) | by, values)


Counters = Iterator[tuple[str, dict[str, str], Sequence[float]]]


def _counters(slo: Slo, objective: Objective, by: dict[str, str], bad: Sequence[float]) -> Counters:
    """Metric, labels and the share of the requests that it counts in each stretch."""
    if isinstance(slo.source, EngineSource):
        return engine_counters(slo.source, objective, by, bad)
    if isinstance(slo.source, QuerySource):
        return query_counters(slo.source, by, bad)
    return _service_counters(slo, objective, by, bad)


def _service_counters(
    slo: Slo, objective: Objective, by: dict[str, str], bad: Sequence[float]
) -> Counters:
    labels = identity(slo, objective) | by
    yield SLO_REQUESTS_METRIC, labels, [1.0] * len(bad)
    yield SLO_BAD_METRIC, labels, bad
