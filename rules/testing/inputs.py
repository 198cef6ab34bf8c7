"""The series of a budget that a Prometheus would scrape, for a course of traffic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_SAMPLED,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo.course import Course
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo, objectives
from tailburn.rules.promql import duration
from tailburn.rules.recording.rates import SAMPLED_S
from tailburn.rules.testing.counters import counted, levels
from tailburn.rules.testing.unit import Input


@dataclass(frozen=True)
class Scrapes:
    """How the courses of an SLO's budgets are seen: each so many seconds."""

    interval_s: int
    courses: Mapping[str, Course]  # by objective
    resets: tuple[int, ...] = ()

    @property
    def are_sparse(self) -> bool:
        """Too far apart for the rates over 5 min that long windows are means of.

        These are given as if they had been recorded: a course of days stays a quick test.
        """
        return self.interval_s > SAMPLED_S


def inputs_of(slo: Slo, scrapes: Scrapes) -> tuple[Input, ...]:
    """Counters of the label set in trouble, and of one beside it where all is well."""
    return tuple(_inputs(slo, scrapes))


def _inputs(slo: Slo, scrapes: Scrapes) -> Iterator[Input]:
    for objective in objectives(slo):
        course = scrapes.courses[objective.name]
        yield from _counters(slo, objective, course, scrapes, troubled(slo), is_well=False)
        if slo.by:
            yield from _counters(slo, objective, course, scrapes, well(slo), is_well=True)


def _counters(
    slo: Slo,
    objective: Objective,
    course: Course,
    scrapes: Scrapes,
    by: dict[str, str],
    *,
    is_well: bool,
) -> Iterator[Input]:
    labels = identity(slo, objective) | by
    stretches = course.stretches
    everything = [1.0] * len(stretches)
    bad = [0.0 if is_well else stretch.bad_ratio for stretch in stretches]
    for metric, record, ratios in (
        (SLO_REQUESTS_METRIC, SLO_TOTAL_RATE_RECORD, everything),
        (SLO_BAD_METRIC, SLO_BAD_RATE_RECORD, bad),
    ):
        values = counted(stretches, ratios, scrapes.interval_s, scrapes.resets)
        yield Input(metric, labels, values)
        if scrapes.are_sparse:
            sampled = f"{record}{duration(SAMPLED_S)}{SLO_SAMPLED}"
            yield Input(sampled, labels, levels(stretches, ratios, scrapes.interval_s))


def identity(slo: Slo, objective: Objective) -> dict[str, str]:
    """The labels by which a budget is told apart."""
    return {
        SLO_LABEL: slo.name,
        OBJECTIVE_LABEL: objective.name,
        DEFINITION_LABEL: definition_of(slo, objective),
    }


def troubled(slo: Slo) -> dict[str, str]:
    """The values of `by` where the course is what the test says."""
    return {name: f"{name}-in-trouble" for name in slo.by}


def well(slo: Slo) -> dict[str, str]:
    """The values of `by` where every request is good."""
    return {name: f"{name}-that-is-well" for name in slo.by}
