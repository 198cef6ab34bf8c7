"""What is left of a budget, how fast it burns now, and when the rest is gone at that rate.

Budgets are of requests, so a busy hour weighs more than an idle one. What was not measured is
in neither number: a budget without a single verdict has no share left, and is never whole.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from tailburn.engine.grouping import I64
from tailburn.engine.slo import burn
from tailburn.engine.slo.model import Calendar, Window
from tailburn.engine.slo.periods import period_of

NOW_S: Final = burn.HOUR_S
"""The burn rate of now is that of the last hour."""

_NS: Final = 1_000_000_000
_POINTS: Final = 60


class Outlook(StrEnum):
    """What becomes of the budget at the rate of the last hour."""

    GONE = "gone"  # already
    RUNS_OUT = "runs out"  # at a known time
    LASTS = "lasts"  # never, or not before its window ends
    UNMEASURED = "unmeasured"  # no request of the last hour, or of the window, has a verdict


@dataclass(frozen=True)
class Counts:
    """Verdicts of one budget by time: each array (bins,), `begin_ns` rising, the last one open."""

    begin_ns: I64
    requests: I64
    bad: I64
    unmeasured: I64


@dataclass(frozen=True)
class Budget:
    """How a budget stands at a moment. Ratios are None where nothing was measured."""

    begin_ns: int  # of its window
    end_ns: int  # of a calendar's period; the moment itself where the window moves on
    since_ns: int | None  # the first request in it that has a verdict
    requests: int
    bad: int
    unmeasured: int
    burned_ratio: float | None  # of the whole budget; 1: gone, more: overdrawn
    burn: float | None  # times faster than allowed, in the last hour
    outlook: Outlook
    gone_ns: int | None  # when it is gone at that rate
    course: tuple[tuple[int, float | None], ...]  # up to a time, the share left then

    @property
    def left_ratio(self) -> float | None:
        """Of the whole budget; below 0 it is overdrawn."""
        return None if self.burned_ratio is None else 1 - self.burned_ratio

    @property
    def unmeasured_ratio(self) -> float | None:
        """The share of the window's requests that could not be judged."""
        seen = self.requests + self.unmeasured
        return self.unmeasured / seen if seen else None


def window_of(window: Window, now_ns: int) -> tuple[int, int]:
    """Begin and end of the window that `now_ns` is in; a rolling one ends now."""
    if isinstance(window, Calendar):
        return period_of(window, now_ns)
    return now_ns - round(window.seconds * _NS), now_ns


def budget(counts: Counts, budget_ratio: float, window: Window, now_ns: int) -> Budget:
    """How a budget of `budget_ratio` stands at `now_ns`; `counts` reach back over its window."""
    begin_ns, end_ns = window_of(window, now_ns)
    within = _part(counts, begin_ns, now_ns)
    lately = _part(counts, now_ns - NOW_S * _NS, now_ns)
    requests, bad = int(within.requests.sum()), int(within.bad.sum())
    burned = bad / requests / budget_ratio if requests else None
    burning = _share(lately, budget_ratio)
    outlook, gone_ns = Outlook.UNMEASURED, None
    if burned is not None and burned >= 1:
        outlook = Outlook.GONE
    elif burned is not None and burning is not None:
        gone_ns = _gone_ns(within, lately, budget_ratio, window, (begin_ns, now_ns))
        outlook = Outlook.LASTS if gone_ns is None else Outlook.RUNS_OUT
    measured = within.begin_ns[within.requests > 0]
    return Budget(
        begin_ns=begin_ns,
        end_ns=end_ns,
        since_ns=int(measured[0]) if len(measured) else None,
        requests=requests,
        bad=bad,
        unmeasured=int(within.unmeasured.sum()),
        burned_ratio=burned,
        burn=burning,
        outlook=outlook,
        gone_ns=gone_ns,
        course=_course(within, budget_ratio, begin_ns, now_ns),
    )


def _part(counts: Counts, begin_ns: int, end_ns: int) -> Counts:
    inside = (counts.begin_ns >= begin_ns) & (counts.begin_ns < end_ns)
    columns = (counts.begin_ns, counts.requests, counts.bad, counts.unmeasured)
    return Counts(*(column[inside] for column in columns))


def _share(counts: Counts, budget_ratio: float) -> float | None:
    requests = int(counts.requests.sum())
    return int(counts.bad.sum()) / requests / budget_ratio if requests else None


def _gone_ns(
    within: Counts, lately: Counts, budget_ratio: float, window: Window, span: tuple[int, int]
) -> int | None:
    """When more than the budget is bad, if requests and bad ones go on as in the last hour.

    What happened at the begin of a rolling window leaves it meanwhile.
    """
    begin_ns, now_ns = span
    per_ns = lately.requests.sum() / (NOW_S * _NS)
    bad_per_ns = lately.bad.sum() / (NOW_S * _NS)
    excess_per_ns = bad_per_ns - budget_ratio * per_ns
    excess = within.bad.sum() - budget_ratio * within.requests.sum()
    if isinstance(window, Calendar):
        after_ns = -excess / excess_per_ns if excess_per_ns > 0 else np.inf
        ends_ns = period_of(window, now_ns)[1]
        return int(now_ns + after_ns) if now_ns + after_ns < ends_ns else None
    ahead_ns = np.append(within.begin_ns - begin_ns, now_ns - begin_ns).astype(np.float64)
    of_bins = np.append(0.0, np.cumsum(within.bad - budget_ratio * within.requests))
    at = excess + excess_per_ns * ahead_ns - of_bins
    over = np.flatnonzero(at > 0)
    if not len(over):
        return None
    i = int(over[0])
    left_ns, left = (ahead_ns[i - 1], at[i - 1]) if i else (0.0, excess)
    step_ns = (ahead_ns[i] - left_ns) * -left / (at[i] - left)
    return int(now_ns + left_ns + step_ns)


def _course(
    within: Counts, budget_ratio: float, begin_ns: int, now_ns: int
) -> tuple[tuple[int, float | None], ...]:
    """The burn-down: of the budget that the window's requests allow, what was left by then."""
    allowed = budget_ratio * within.requests.sum()
    points = begin_ns + (now_ns - begin_ns) * np.arange(1, _POINTS + 1) // _POINTS
    ends = np.searchsorted(within.begin_ns, points)
    burned = np.append(0, np.cumsum(within.bad))[ends]
    known = np.append(0, np.cumsum(within.requests))[ends] > 0
    return tuple(
        (int(at_ns), float(1 - spent / allowed) if is_known else None)
        for at_ns, spent, is_known in zip(points, burned, known, strict=True)
    )
