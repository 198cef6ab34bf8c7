"""A course of traffic: how many requests came, and how many were bad, over time.

It is made of stretches of even traffic, so its counts are lines with knees. When the share of
bad requests in a trailing window passes a threshold is then solved for, not sampled: times are
exact. All times are seconds from the begin of the first stretch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Span = tuple[float, float]
"""From a second on, up to another."""

_DUST_SHARE = 1e-12
"""So little of all requests is what differences of large counts leave of nothing."""


@dataclass(frozen=True)
class Stretch:
    """Even traffic for so many seconds."""

    for_s: float
    bad_ratio: float
    requests_per_s: float = 1.0
    is_measured: bool = True  # False: a gap in the data, nothing is counted


def gap(for_s: float) -> Stretch:
    """So many seconds of which nothing is known."""
    return Stretch(for_s, 0.0, 0.0, is_measured=False)


@dataclass(frozen=True)
class Course:
    """Stretches one after the other; before them all was well, at the first traffic there is.

    `is_young`: before them there was nothing at all. After them nothing more is counted.
    """

    stretches: Sequence[Stretch]
    is_young: bool = False

    @property
    def end_s(self) -> float:
        """When the last stretch is over."""
        return float(self.knees_s[-1])

    @cached_property
    def knees_s(self) -> Floats:
        """Where one stretch gives way to the next, the begin and the end among them."""
        return np.concatenate(([0.0], np.cumsum([s.for_s for s in self.stretches])))

    def requests(self, at_s: Floats) -> Floats:
        """Requests counted from 0 up to a time; negative before 0, where there was a past."""
        return self._counted(at_s, self._requests, self._past_per_s)

    def bad(self, at_s: Floats) -> Floats:
        """Bad requests counted from 0 up to a time."""
        return self._counted(at_s, self._bad, 0.0)

    def in_window(self, at_s: Floats, window_s: float) -> tuple[Floats, Floats]:
        """Requests and bad ones of the last `window_s` seconds before each time."""
        return (
            self.requests(at_s) - self.requests(at_s - window_s),
            self.bad(at_s) - self.bad(at_s - window_s),
        )

    def measured_s(self, at_s: Floats, window_s: float) -> Floats:
        """How much of the last `window_s` seconds before each time has data."""
        past_per_s = 0.0 if self.is_young else 1.0
        until, since = (
            self._counted(t, self._measured, past_per_s) for t in (at_s, at_s - window_s)
        )
        return until - since

    def bad_ratio_in(self, window_s: float, at_s: float) -> float | None:
        """The share of bad requests in the last `window_s` seconds; None without requests."""
        requests, bad = (float(n[0]) for n in self.in_window(np.array([at_s]), window_s))
        return bad / requests if requests > 0 else None

    def over(self, window_s: float, threshold_ratio: float) -> tuple[Span, ...]:
        """While more than this share of the last `window_s` seconds' requests was bad."""
        knees = self.knees_of(window_s)
        requests, bad = self.in_window(knees, window_s)
        above = bad - threshold_ratio * requests
        above[np.abs(above) <= _DUST_SHARE * self._requests[-1]] = 0.0
        return positive_spans(knees, above)

    def unmeasured(self, window_s: float) -> tuple[Span, ...]:
        """While the last `window_s` seconds lie in gaps of the data altogether."""
        begins = ((b + window_s, e) for b, e in self._gaps())
        return tuple((begin, end) for begin, end in begins if begin < end)

    def _gaps(self) -> tuple[Span, ...]:
        bounds = zip(self.knees_s[:-1], self.knees_s[1:], strict=True)
        spans = zip(self.stretches, bounds, strict=True)
        return union((float(b), float(e)) for s, (b, e) in spans if not s.is_measured)

    def knees_of(self, window_s: float) -> Floats:
        """Where the counts of a window change their slope: a knee enters it, or leaves it."""
        knees = np.union1d(self.knees_s, self.knees_s + window_s)
        return knees[knees <= self.end_s]

    @property
    def _past_per_s(self) -> float:
        rates = (s.requests_per_s for s in self.stretches if s.requests_per_s > 0)
        return 0.0 if self.is_young else next(rates, 0.0)

    @cached_property
    def _requests(self) -> Floats:
        counts = [s.for_s * s.requests_per_s for s in self.stretches]
        return np.concatenate(([0.0], np.cumsum(counts)))

    @cached_property
    def _bad(self) -> Floats:
        counts = [s.for_s * s.requests_per_s * s.bad_ratio for s in self.stretches]
        return np.concatenate(([0.0], np.cumsum(counts)))

    @cached_property
    def _measured(self) -> Floats:
        lasted = [s.for_s * s.is_measured for s in self.stretches]
        return np.concatenate(([0.0], np.cumsum(lasted)))

    def _counted(self, at_s: Floats, counts: Floats, past_per_s: float) -> Floats:
        within = np.interp(at_s, self.knees_s, counts)
        return within + np.minimum(at_s, 0.0) * past_per_s


def positive_spans(at_s: Floats, value: Floats) -> tuple[Span, ...]:
    """Where the line through these points is above 0."""
    spans: list[Span] = []
    for i in np.flatnonzero((value[:-1] > 0) | (value[1:] > 0)):
        begin, end, left, right = at_s[i], at_s[i + 1], value[i], value[i + 1]
        crossing = begin + (end - begin) * left / (left - right) if left * right < 0 else 0.0
        if left < 0:
            begin = crossing
        elif right < 0:
            end = crossing
        spans.append((float(begin), float(end)))
    return union(spans)


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same seconds in as few spans as possible, in order."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)


def both(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """The seconds that lie in a span of each."""
    shared: list[Span] = []
    i = j = 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            shared.append((begin, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


def apart(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """The seconds of one that lie in no span of the other."""
    bounds = [t for span in union(other) for t in span]
    outside = zip([-np.inf, *bounds[1::2]], [*bounds[::2], np.inf], strict=True)
    return both(union(one), tuple(outside))
