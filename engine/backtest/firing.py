"""When burn alerts would have fired, from minutes of counts.

As `engine.slo.simulate` judges a course: at every instant, the short window for "it goes on" and
the long one for "it matters". Before the first minute all was well, at the traffic there was in
it. A hole in what was kept freezes an alert, as missing data do in the rules.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.backtest.minutes import Counts
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.burn import MINUTE_S, Pair, Severity, pairs, window_s
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.model import Objective, Slo
from tailburn.engine.slo.simulate import firings

_NS = 1_000_000_000


@dataclass(frozen=True)
class Fired:
    """An alert that would have fired. `end_ns` None: it still did at the end of what is kept."""

    slo: Slo
    objective: Objective
    by: tuple[tuple[str, str], ...]
    pair: Pair
    start_ns: int
    end_ns: int | None

    @property
    def severity(self) -> Severity:
        """Who would have been told."""
        return self.pair.severity


def fired(counts: Iterable[Counts], holes: Sequence[tuple[int, int]] = ()) -> tuple[Fired, ...]:
    """Every time that a burn alert of these budgets fires, in order of time.

    `holes`: spans of ns, whole minutes, of which nothing was kept.
    """
    found = [one for each in counts for one in _of(each, holes)]
    return tuple(sorted(found, key=lambda one: (one.start_ns, one.slo.name, one.objective.name)))


def _of(counts: Counts, holes: Sequence[tuple[int, int]]) -> Iterator[Fired]:
    window = window_s(counts.slo.window)
    course = course_of(counts, holes)
    for each in firings(course, pairs(counts.objective.budget_ratio, window)):
        end_ns = None if each.end_s is None else counts.since_ns + round(each.end_s * _NS)
        start_ns = counts.since_ns + round(each.begin_s * _NS)
        yield Fired(counts.slo, counts.objective, counts.by, each.pair, start_ns, end_ns)


def course_of(counts: Counts, holes: Sequence[tuple[int, int]]) -> Course:
    """The minutes as stretches of even traffic, alike ones joined."""
    missing = _minutes_in(holes, counts.since_ns, len(counts))
    return Course(tuple(_stretches(counts.requests, counts.bad, missing)))


def _minutes_in(spans: Sequence[tuple[int, int]], since_ns: int, length: int) -> NDArray[np.bool_]:
    mask = np.zeros(length, np.bool_)
    for begin_ns, end_ns in spans:
        mask[
            max((begin_ns - since_ns) // MINUTE_NS, 0) : max((end_ns - since_ns) // MINUTE_NS, 0)
        ] = True
    return mask


def _stretches(requests: I64, bad: I64, missing: NDArray[np.bool_]) -> Iterator[Stretch]:
    codes = np.stack([requests, bad, missing.astype(np.int64)], axis=1)
    begins = np.flatnonzero(np.append(True, (codes[1:] != codes[:-1]).any(axis=1)))
    ends = np.append(begins[1:], len(codes))
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        for_s, (n, b, hole) = float((end - begin) * MINUTE_S), codes[begin].tolist()
        yield gap(for_s) if hole else Stretch(for_s, b / n if n else 0.0, n / MINUTE_S)


def episodes(spans: Iterable[tuple[int, int]], apart_ns: int) -> tuple[tuple[int, int], ...]:
    """Spans of ns joined where they lie no further apart: what one person is called for once."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] <= apart_ns:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)
