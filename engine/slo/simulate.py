"""What a course of traffic does to a budget: which alerts fire when, and what is left of it.

The alerts are judged as their rules state them, at every instant: a Prometheus that evaluates
each minute sees the same up to a minute later. Times are seconds from the begin of the course.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from tailburn.engine.evaluation.windows import FROZEN_AT_MOST_S
from tailburn.engine.slo.beyond_chance import beyond_chance
from tailburn.engine.slo.burn import SHORTEST_S, Pair
from tailburn.engine.slo.course import Course, Floats, Span, Stretch, apart, both, union

_SAME_S: Final = 1e-6


@dataclass(frozen=True)
class Firing:
    """An alert that fired, from when until when."""

    pair: Pair
    begin_s: float
    end_s: float | None  # None: it still fires when the course ends


class Effect(StrEnum):
    """What it does to an alert that its bad requests may be chance."""

    DELAYED = "delayed"
    PREVENTED = "prevented"
    ENDED = "ended"  # before its shares are under the threshold


@dataclass(frozen=True)
class Held:
    """An alert that is silent though both of its shares are over: so few bad ones may be chance."""

    pair: Pair
    begin_s: float
    end_s: float
    effect: Effect


def firings(course: Course, pairs: Iterable[Pair], series: int = 1) -> tuple[Firing, ...]:
    """Every time that one of these alerts fires, in order.

    The course is that of one of so many series of the budget that have requests.
    """
    found = [
        Firing(pair, begin_s, end_s if end_s < course.end_s else None)
        for pair in pairs
        for begin_s, end_s in _firing(course, pair, series)
    ]
    return tuple(sorted(found, key=lambda firing: firing.begin_s))


def held(course: Course, pairs: Iterable[Pair], series: int = 1) -> tuple[Held, ...]:
    """Every time that chance alone keeps one of these alerts silent, in order."""
    found: list[Held] = []
    for pair in pairs:
        over = _over(course, pair)
        surprising = beyond_chance(course, pair, series, over)
        for begin_s, end_s in apart(over, surprising):
            if end_s - begin_s > _SAME_S:
                effect = _effect((begin_s, end_s), surprising)
                found.append(Held(pair, begin_s, end_s, effect))
    return tuple(sorted(found, key=lambda one: one.begin_s))


def _effect(silent: Span, surprising: Sequence[Span]) -> Effect:
    begin_s, end_s = silent
    if any(abs(begin - end_s) < _SAME_S for begin, _ in surprising):
        return Effect.DELAYED
    is_after = any(abs(end - begin_s) < _SAME_S for _, end in surprising)
    return Effect.ENDED if is_after else Effect.PREVENTED


def _firing(course: Course, pair: Pair, series: int) -> tuple[Span, ...]:
    """While more than chance is over the threshold in both windows, or was when the data ended."""
    firing = beyond_chance(course, pair, series, _over(course, pair))
    return union([*firing, *_frozen(firing, course.unmeasured(pair.short_s), pair.short_s)])


def _over(course: Course, pair: Pair) -> tuple[Span, ...]:
    """While the share of bad requests is over the threshold in both windows."""
    long, short = (course.over(w, pair.threshold_ratio) for w in (pair.long_s, pair.short_s))
    return both(long, short)


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
