"""While more is bad in a course than chance gives, as burn alerts ask of their long window.

Within the stretches of a course the counts of a window are lines, over which the surprise is
convex: what is under the floor there is one span, whose ends are solved for.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tailburn.engine.evaluation.chance import floor, healthy_ratio, surprise
from tailburn.engine.evaluation.windows import STRAIGHT_UP_TO_S
from tailburn.engine.slo.burn import Pair
from tailburn.engine.slo.course import Course, Floats, Span, union

Values = Callable[[Floats], Floats]
_HALVINGS: Final = 60  # a year to the nanosecond


def beyond_chance(
    course: Course, pair: Pair, series: int, within: Sequence[Span]
) -> tuple[Span, ...]:
    """The part of these spans, while the share of bad requests is over the pair's threshold."""

    def above(at_s: Floats) -> Floats:
        requests, bad = course.in_window(at_s, pair.long_s)
        known = np.nan_to_num(surprise(bad, requests, healthy_ratio(pair.budget_ratio)))
        return known - floor(series) * _counted_part(course, pair, at_s)

    begins, ends = _cut(within, course.knees_of(pair.long_s))
    return convex_spans(begins, ends, above) if len(begins) else ()


def _counted_part(course: Course, pair: Pair, at_s: Floats) -> Floats:
    """Of a long window's own counts to those that are judged: the mean rate, over all of it."""
    if pair.long_s <= STRAIGHT_UP_TO_S:
        return np.ones(len(at_s))
    return course.measured_s(at_s, pair.long_s) / pair.long_s


def _cut(spans: Sequence[Span], at_s: Floats) -> tuple[Floats, Floats]:
    """Begins and ends of the spans, cut at these times."""
    parts = [
        np.concatenate(([begin], at_s[(at_s > begin) & (at_s < end)], [end]))
        for begin, end in spans
    ]
    begins, ends = ([p[cut] for p in parts] for cut in (slice(None, -1), slice(1, None)))
    return np.concatenate([[], *begins]), np.concatenate([[], *ends])


def convex_spans(begins: Floats, ends: Floats, value: Values) -> tuple[Span, ...]:
    """Where a value that is convex within each of these spans is 0 or above."""
    lows = _lowest(begins, ends, value)
    whole = value(lows) >= 0
    left, right = ~whole & (value(begins) > 0), ~whole & (value(ends) > 0)
    return union(
        (float(begin), float(end))
        for from_s, to_s in (
            (begins[whole], ends[whole]),
            (begins[left], _crossing(lows[left], begins[left], value)),
            (_crossing(lows[right], ends[right], value), ends[right]),
        )
        for begin, end in zip(from_s, to_s, strict=True)
    )


def _lowest(begins: Floats, ends: Floats, value: Values) -> Floats:
    """Where it is lowest within each span."""
    low, high = begins, ends
    for _ in range(2 * _HALVINGS):
        third = (high - low) / 3
        falls = value(low + third) > value(high - third)
        low, high = np.where(falls, low + third, low), np.where(falls, high, high - third)
    found = np.stack([begins, low, ends])
    chosen = np.argmin(np.stack([value(at_s) for at_s in found]), axis=0)
    lowest: Floats = found[chosen, np.arange(len(begins))]
    return lowest


def _crossing(under: Floats, over: Floats, value: Values) -> Floats:
    """Between times at which it is under 0 and others at which it is over."""
    for _ in range(_HALVINGS):
        middle = (under + over) / 2
        is_over = value(middle) >= 0
        under, over = np.where(is_over, under, middle), np.where(is_over, middle, over)
    return over
