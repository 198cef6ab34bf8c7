"""How fast a budget may burn before somebody is told: pairs of windows, thresholds, times.

A pair fires while the share of bad requests is above `factor * budget` over its long window
and over its short one: the long one says that it matters, the short one that it goes on.
Factors and windows are those of the SRE workbook (ch. 5, table 5-8 and the code of its sixth
approach): 2 % of a 30-day budget within 1 h, 5 % within 6 h, 10 % within 1 d, 10 % within 3 d.

Three things move a factor away from them, and `Pair.limit` says which did:

* Detection. An objective of 99 % pages 8.64 min after all requests went bad, and 86.4 min after
  a quarter did. A wider budget keeps these two times instead of the factor: at 95 % the factor
  of 14.4 needs 72 % bad requests and takes 43 min. Its windows are shorter for it, since the
  same time over a shorter window is a higher threshold: further from what is healthy.
* Half. No pair needs more than half of all requests to be bad.
* Floor. No page comes, and no one-day ticket, from less than 1.25 times the budget.

Windows of 28 days and more keep the look-back and scale the factor (13.44 at 28 days), so that
the same share of the budget is gone; under that the look-back shrinks with the window.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailburn.engine.slo.model import Calendar, Window

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400

DETECT_ALL_BAD_S: Final = 518.4  # 14.4 * 1 % * 1 h: what the workbook gives to 99 %
DETECT_QUARTER_BAD_S: Final = 5184.0  # 6 * 1 % * 6 h / 25 %: the same
MOST_BAD_RATIO: Final = 0.5
LEAST_FACTOR: Final = 1.25  # of a page; see `Limit.FLOOR`
TEXTBOOK_BUDGET_RATIO: Final = 0.01  # up to here the textbook's factors detect in time
TEXTBOOK_WINDOW_S: Final = 30 * DAY_S
SCALED_UNDER_S: Final = 28 * DAY_S
LEAST_SCALE: Final = 1 / 6
SHORTEST_S: Final = 5 * MINUTE_S  # four scrapes a minute apart: less is no rate
PERIODS_S: Final = {"day": DAY_S, "week": 7 * DAY_S, "month": 30 * DAY_S, "quarter": 91 * DAY_S}


class Severity(StrEnum):
    """Who is told: a person now, or a queue of work."""

    PAGE = "page"
    TICKET = "ticket"


class Limit(StrEnum):
    """Why a factor is not the textbook's."""

    NONE = "the share of the budget that is gone"
    DETECTION = "the time to detect"
    HALF = "half of all requests"
    FLOOR = "the least factor worth it"


@dataclass(frozen=True)
class Pair:
    """One burn alert of one budget. Windows are whole seconds."""

    severity: Severity
    long_s: int
    short_s: int
    factor: float  # as it is after limits: what `burn_rate` shows
    budget_ratio: float
    textbook_factor: float  # as it was before
    limit: Limit = Limit.NONE

    @property
    def threshold_ratio(self) -> float:
        """The share of bad requests that is too much, cleared of the dust of a product."""
        return round(self.factor * self.budget_ratio, 12)

    @property
    def was_reachable(self) -> bool:
        """Whether the textbook's factor could have fired at all."""
        return self.textbook_factor * self.budget_ratio < 1


@dataclass(frozen=True)
class _Row:
    """A line of the workbook's table: this share of the budget within the long window."""

    severity: Severity
    share: float
    book_s: int  # the long window in the book
    long_s: int  # and that for this budget
    most_bad: float | None = None  # threshold that keeps the stated time to detect


_PAGE_WINDOWS: Final = (
    (0.03, HOUR_S, 6 * HOUR_S),
    (0.12, 30 * MINUTE_S, 2 * HOUR_S),
    (1.0, 15 * MINUTE_S, HOUR_S),
)
"""Up to this budget: the long windows of the fast and of the slow page."""

QUARTER: Final = 0.25
DAY_TICKET_BAD_RATIO: Final = 0.15  # a quarter bad is a ticket after 60 % of its long window


def window_s(window: Window) -> int:
    """How long a window is; a calendar's as long as its period is on the whole."""
    return PERIODS_S[window.period] if isinstance(window, Calendar) else round(window.seconds)


def pairs(budget_ratio: float, window_s: float) -> tuple[Pair, ...]:
    """The pairs of a budget, quickest first; of those that limits made alike, the quickest.

    None for a budget of half and more: a threshold under it would fire in health.
    """
    if not 0 < budget_ratio < 1:
        raise ValueError(f"a budget is a ratio within 0 and 1, got {budget_ratio!r}")
    if not window_s >= HOUR_S:
        raise ValueError(f"a window is an hour or more, got {window_s!r} s")
    found = (_pair(row, budget_ratio, window_s) for row in _rows(budget_ratio, window_s))
    return _merged(pair for pair in found if not _fires_in_health(pair))


def detection_s(pair: Pair, bad_ratio: float) -> float | None:
    """From the first bad request until it fires, while this share is bad; None: never.

    Constant traffic, none bad before. `threshold / bad * long`.
    """
    if bad_ratio <= pair.threshold_ratio:
        return None
    return pair.threshold_ratio / bad_ratio * pair.long_s


def reset_s(pair: Pair, bad_ratio: float) -> float | None:
    """From the last bad request until it ends; None where it never fired.

    It had lasted until it fired, and for a short window at least. `short * (1 - threshold / bad)`.
    """
    if bad_ratio <= pair.threshold_ratio:
        return None
    return pair.short_s * (1 - pair.threshold_ratio / bad_ratio)


def budget_used_ratio(pair: Pair, window_s: float) -> float:
    """The share of the whole budget that is gone by when it fires: `factor * long / window`."""
    return pair.factor * pair.long_s / window_s


def _rows(budget_ratio: float, window_s: float) -> tuple[_Row, ...]:
    """The lines for a budget and a window."""
    fast_s, slow_s = next((f, s) for most, f, s in _PAGE_WINDOWS if budget_ratio <= most)
    if budget_ratio <= TEXTBOOK_BUDGET_RATIO:  # a wide budget's pages keep stated times instead
        fast_s, slow_s = _scaled(fast_s, window_s), _scaled(slow_s, window_s)
    day_s, days_s = _scaled(DAY_S, window_s), _scaled(3 * DAY_S, window_s)
    slow_s = min(slow_s, _minutes(day_s / 2))  # a page never looks back as far as a ticket
    fast_bad = DETECT_ALL_BAD_S / fast_s
    slow_bad = QUARTER * DETECT_QUARTER_BAD_S / slow_s
    return (
        _Row(Severity.PAGE, 0.02, HOUR_S, fast_s, fast_bad),
        _Row(Severity.PAGE, 0.05, 6 * HOUR_S, slow_s, slow_bad),
        _Row(Severity.TICKET, 0.1, DAY_S, day_s, DAY_TICKET_BAD_RATIO),
        _Row(Severity.TICKET, 0.1, 3 * DAY_S, days_s),
    )


def _pair(row: _Row, budget_ratio: float, window_s: float) -> Pair:
    """The line with its factor, and what limited it."""
    book = round(row.share * _book_window_s(window_s) / row.book_s, 12)
    wanted, limit = book * budget_ratio, Limit.NONE
    wide_page = row.severity is Severity.PAGE and budget_ratio > TEXTBOOK_BUDGET_RATIO
    if row.most_bad is not None and (wide_page or row.most_bad < wanted):
        wanted, limit = row.most_bad, Limit.DETECTION
    if row.most_bad is not None and wanted < LEAST_FACTOR * budget_ratio:
        wanted, limit = LEAST_FACTOR * budget_ratio, Limit.FLOOR
    if wanted > MOST_BAD_RATIO:
        wanted, limit = MOST_BAD_RATIO, Limit.HALF
    factor = book if limit is Limit.NONE else round(wanted / budget_ratio, 12)
    return Pair(row.severity, row.long_s, _short(row), factor, budget_ratio, book, limit)


def _book_window_s(window_s: float) -> float:
    """The window that the factors are those of: from 28 days on the SLO's own."""
    return window_s if window_s >= SCALED_UNDER_S else TEXTBOOK_WINDOW_S


def _short(row: _Row) -> int:
    """A twelfth of the long window, as the workbook has it, in whole minutes."""
    return max(_minutes(row.long_s / 12), SHORTEST_S)


def _scaled(long_s: int, window_s: float) -> int:
    """The look-back in proportion to a window of less than 28 days, but no less than a sixth."""
    if window_s >= SCALED_UNDER_S:
        return long_s
    return _minutes(long_s * max(window_s / TEXTBOOK_WINDOW_S, LEAST_SCALE))


def _minutes(seconds: float) -> int:
    return round(seconds / MINUTE_S) * MINUTE_S


def _fires_in_health(pair: Pair) -> bool:
    return pair.limit is Limit.HALF and pair.threshold_ratio <= pair.budget_ratio


def _merged(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Without those that come after a quicker one with no higher a threshold: it says it all."""
    kept: list[Pair] = []
    for pair in pairs:
        if all(pair.threshold_ratio < quicker.threshold_ratio for quicker in kept):
            kept.append(pair)
    return tuple(kept)
