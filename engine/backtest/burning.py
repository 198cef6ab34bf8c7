"""Which budgets burn enough for an alert, from minutes of counts: quicker than a replay of all.

As `engine.slo.simulate` judges a course: at every instant, the short window for "it goes on", the
long one for "it matters" and, by the number of series of the budget, for "it is no chance".
Before the first minute there was nothing: a window that reaches further back holds what there is,
as in a young service. A hole in what was kept freezes an alert, as missing data do in the rules.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.backtest.minutes import Counts
from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.burn import MINUTE_S, pairs, window_s
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.simulate import firings

Spans = Sequence[tuple[int, int]]


def burning(counts: Iterable[Counts], holes: Spans = ()) -> set[tuple[str, str]]:
    """SLO and objective of every budget of which a burn alert would have fired.

    `holes`: spans of ns, whole minutes, of which nothing was kept.
    """
    counted = list(counts)
    series = Counter(map(_budget, counted))
    return {_budget(c) for c in counted if _fires(c, series[_budget(c)], holes)}


def _budget(counts: Counts) -> tuple[str, str]:
    return counts.slo.name, counts.objective.name


def _fires(counts: Counts, series: int, holes: Spans) -> bool:
    alerts = pairs(counts.objective.budget_ratio, window_s(counts.slo.window))
    return bool(firings(course_of(counts, holes), alerts, series))


def course_of(counts: Counts, holes: Spans) -> Course:
    """The minutes as stretches of even traffic, alike ones joined."""
    missing = minutes_in(holes, counts.since_ns, len(counts))
    return Course(tuple(_stretches(counts.requests, counts.bad, missing)), is_young=True)


def minutes_in(spans: Spans, since_ns: int, length: int) -> NDArray[np.bool_]:
    """Which of so many minutes from `since_ns` on are within one of the spans."""
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
