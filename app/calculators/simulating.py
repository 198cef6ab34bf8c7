"""A course of traffic run against the budgets of an SLO: which alerts when, what is left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tailburn.app.calculators.explaining import Explained, explained
from tailburn.app.errors import UserError
from tailburn.engine.problems import one_of
from tailburn.engine.slo.burn import Pair
from tailburn.engine.slo.course import Course
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.simulate import Budget, Firing, Held, firings, held, with_recovery
from tailburn.rules.alerting import Kind


@dataclass(frozen=True)
class Simulated:
    """What a course does to budgets that are equally wide."""

    explained: Explained
    course: Course  # with the recovery after it
    told_s: float  # how much of it was told, without the recovery
    series: int  # of each budget; the course is that of one of them

    @cached_property
    def firings(self) -> tuple[Firing, ...]:
        """Every alert that fires, in order."""
        return firings(self.course, self.explained.pairs, self.series)

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """Every time that chance alone keeps an alert silent, in order."""
        return held(self.course, self.explained.pairs, self.series)

    @property
    def shown_s(self) -> float:
        """Until what was told is over and the last alert has ended."""
        ends = (firing.end_s or self.course.end_s for firing in self.firings)
        return max(self.told_s, *ends, 0.0)

    @cached_property
    def budget(self) -> Budget:
        """What is left of each budget."""
        return Budget(self.course, self.explained.budget_ratio, self.explained.window_s)

    def left_over_time(self, points: int) -> list[float | None]:
        """The share of the budget that is left, at the middle of so many equal parts."""
        middles = (np.arange(points, dtype=np.float64) + 0.5) * (self.shown_s / points)
        left = self.budget.left(middles)
        return [None if np.isnan(value) else float(value) for value in left]

    def bad_over_time(self, points: int) -> list[float | None]:
        """The share of bad requests in so many equal parts; None without requests."""
        part_s = self.shown_s / points
        ends = np.arange(1, points + 1, dtype=np.float64) * part_s
        requests, bad = self.course.in_window(ends, part_s)
        return [float(b / n) if n > 0 else None for n, b in zip(requests, bad, strict=True)]


def chosen(slos: Sequence[Slo], name: str | None) -> Sequence[Slo]:
    """All of them, or the one of this name. Raises UserError where there is none."""
    found = [slo for slo in slos if name in (None, slo.name)]
    if not found:
        raise UserError(f"--slo {name!r}: {one_of(name or '', (slo.name for slo in slos))}")
    return found


def simulated(
    slo: Slo, objective: str | None, course: Course, series: int = 1
) -> Iterator[Simulated]:
    """The course against every budget, or the one of this name. Raises UserError for no such.

    `series`: how many values of `by` have requests; an SLO without `by` has one series.
    """
    names = {one.name for one in objectives(slo)}
    if objective is not None and objective not in names:
        raise UserError(
            f"{slo.place}: {slo.name}: --objective {objective!r}: {one_of(objective, names)}"
        )
    for budget in explained(slo):
        ours = tuple(one for one in budget.objectives if objective in (None, one.name))
        if ours:
            told = with_recovery(course, budget.pairs)
            known = series if slo.by else 1
            yield Simulated(replace(budget, objectives=ours), told, course.end_s, known)


def rows_of(found: Simulated) -> Iterator[dict[str, Any]]:
    """For each budget a row per firing, one per time that chance holds an alert back, and one
    of what it costs. Times are seconds.
    """
    for one in found.explained.objectives:
        key = {"slo": found.explained.slo.name, "objective": one.name}
        yield from (key | row for row in _firing_rows(found))
        yield from (key | row for row in _held_rows(found))
        yield key | _budget_row(found)


def _firing_rows(found: Simulated) -> Iterator[dict[str, Any]]:
    for firing in found.firings:
        yield {
            "type": "firing",
            **_alert(firing.pair),
            "begin_s": firing.begin_s,
            "end_s": firing.end_s,
            "budget_left_ratio": found.budget.left_at(firing.begin_s),
        }


def _held_rows(found: Simulated) -> Iterator[dict[str, Any]]:
    for one in found.held:
        yield {
            "type": "held",
            **_alert(one.pair),
            "begin_s": one.begin_s,
            "end_s": one.end_s,
            "effect": str(one.effect),
        }


def _alert(pair: Pair) -> dict[str, Any]:
    return {
        "alert": str(Kind.BURN),
        "severity": str(pair.severity),
        "long_s": pair.long_s,
        "short_s": pair.short_s,
    }


def _budget_row(found: Simulated) -> dict[str, Any]:
    lowest = found.budget.lowest()
    overdrawn = found.budget.overdrawn()
    return {
        "type": "budget",
        "budget_ratio": found.explained.budget_ratio,
        "left_at_end_ratio": found.budget.left_at(found.told_s),
        "lowest_left_ratio": lowest and lowest[1],
        "lowest_at_s": lowest and lowest[0],
        "overdrawn_at_s": overdrawn[0][0] if overdrawn else None,
    }
