"""What a course of traffic does to a budget: which alerts fire when, and what is left of it.

The alerts are judged as their rules state them, at every instant: a Prometheus that evaluates
each minute sees the same up to a minute later. Times are seconds from the begin of the course.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tailburn.engine.slo.burn import HOUR_S, SHORTEST_S, Pair
from tailburn.engine.slo.course import Course, Floats, Span, Stretch, both, union

FROZEN_AT_MOST_S: Final = 6 * HOUR_S
"""So long a firing alert outlives the data, from when the shortest window has none."""
_SAME_S: Final = 1e-6


@dataclass(frozen=True)
class Firing:
    """An alert that fired, from when until when."""

    pair: Pair
    begin_s: float
    end_s: float | None  # None: it still fires when the course ends


def firings(course: Course, pairs: Iterable[Pair]) -> tuple[Firing, ...]:
    """Every time that one of these alerts fires, in order."""
    found = [
        Firing(pair, begin_s, end_s if end_s < course.end_s else None)
        for pair in pairs
        for begin_s, end_s in _firing(course, pair)
    ]
    return tuple(sorted(found, key=lambda firing: firing.begin_s))


def _firing(course: Course, pair: Pair) -> tuple[Span, ...]:
    """While both windows are over the threshold, or were when the data ended."""
    long, short = (course.over(w, pair.threshold_ratio) for w in (pair.long_s, pair.short_s))
    over = both(long, short)
    return union([*over, *_frozen(over, course.unmeasured(pair.short_s), pair.short_s)])


def _frozen(firing: Sequence[Span], unmeasured: Sequence[Span], short_s: float) -> list[Span]:
    """The seconds without data that an alert lives through: nothing says that it is over."""
    ends = [end for _, end in firing]
    longest_s = SHORTEST_S + FROZEN_AT_MOST_S - short_s
    return [
        (begin, min(end, begin + longest_s))
        for begin, end in unmeasured
        if longest_s > 0 and any(abs(begin - fired) < _SAME_S for fired in ends)
    ]


def with_recovery(course: Course, pairs: Sequence[Pair]) -> Course:
    """The course and, after it, as much good traffic as the slowest of the alerts needs to end."""
    slowest_s = max((pair.short_s for pair in pairs), default=0)
    if not slowest_s:
        return course
    rate = next((s.requests_per_s for s in reversed(course.stretches) if s.is_measured), 0.0)
    return replace(course, stretches=(*course.stretches, Stretch(slowest_s, 0.0, rate)))


@dataclass(frozen=True)
class Budget:
    """What a course leaves of a budget: this share of a window's requests may be bad."""

    course: Course
    budget_ratio: float
    window_s: float

    def left(self, at_s: Floats) -> Floats:
        """The share that is left at these times, below 0 when overdrawn; nan without requests."""
        requests, bad = self.course.in_window(at_s, self.window_s)
        share = np.full(len(at_s), np.nan)
        np.divide(bad, requests, out=share, where=requests > 0)
        return 1 - share / self.budget_ratio

    def left_at(self, at_s: float) -> float | None:
        """The share that is left at one time; None without requests."""
        left = float(self.left(np.array([at_s]))[0])
        return None if np.isnan(left) else left

    def lowest(self) -> tuple[float, float] | None:
        """When the least was left, and how much; None where there was no request."""
        # Between two knees what is left only falls or only rises: its lowest is at a knee.
        knees = self.course.knees_of(self.window_s)
        left = self.left(knees)
        if np.isnan(left).all():
            return None
        at = int(np.nanargmin(left))
        return float(knees[at]), float(left[at])

    def overdrawn(self) -> tuple[Span, ...]:
        """While more was bad than the budget allows."""
        return self.course.over(self.window_s, self.budget_ratio)
