"""The courses of traffic that burn rules are tested with, each for a reason."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation.windows import FROZEN_AT_MOST_S
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S, Limit, Pair
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.model import Objective, Slo
from tailburn.rules.sources.choose import budgets_of

REQUESTS_PER_S: Final = 100_000.0  # so many that every share of them is whole requests
BUSY_TIMES: Final = 5
QUICK_S: Final = MINUTE_S
GAP_STEP_S: Final = 150
INTERVALS_S: Final = (30 * MINUTE_S, 10 * MINUTE_S, 150, MINUTE_S)
"""Between scrapes: the longest that a short window holds three of, so that days are few steps."""

_OVER: Final = 1.1
_BEFORE: Final = 6
"""So many short windows it is busy: enough for the long one to stay over its threshold."""
_PASSED: Final = 1.25
"""So many short windows later the short one holds nothing of before, and longer ones do."""

Pairs = tuple[Pair, ...]


@dataclass(frozen=True)
class Scenario:
    """A course for each objective, scraped each so many seconds."""

    name: str
    interval_s: int
    courses: Mapping[str, Course]
    resets: tuple[int, ...] = ()
    slack_s: float = 0.0  # nobody is asked this near to an edge


def scenarios(slo: Slo) -> Iterator[Scenario]:
    """All that apply to an SLO."""
    budgets = {o: _pairs_of(slo, o) for o in budgets_of(slo)}
    budgets = {objective: pairs for objective, pairs in budgets.items() if pairs}
    if not budgets:
        return
    for make in (_quiet, _outage, _young, _idle, _reset, _gap):
        yield make(budgets)
    for index in range(max(map(len, budgets.values()))):
        yield from _around(budgets, index)
        yield from _falling(budgets, index)
        yield _slow_burn(budgets, index)


def _pairs_of(slo: Slo, objective: Objective) -> Pairs:
    """The burn alerts of a budget."""
    return burn.pairs(objective.budget_ratio, burn.window_s(slo.window))


Budgets = Mapping[Objective, Pairs]


def _make(
    name: str,
    budgets: Budgets,
    stretches: Callable[[Pairs], Sequence[Stretch]],
    interval_s: int = QUICK_S,
    resets: tuple[int, ...] = (),
    slack_s: float = 0.0,
) -> Scenario:
    courses = {o.name: Course(stretches(pairs), is_young=True) for o, pairs in budgets.items()}
    return Scenario(name, interval_s, courses, resets, slack_s)


def _quiet(budgets: Budgets) -> Scenario:
    """Some requests are bad, as always: half of what the slowest alert allows."""
    return _make(
        "quiet: half of what is allowed is bad, and nothing fires",
        budgets,
        lambda pairs: [_burning(30 * MINUTE_S, pairs[-1].threshold_ratio / 2)],
    )


def _outage(budgets: Budgets) -> Scenario:
    """Every request is bad for as long as the quickest page needs, and half of that again."""
    return _make(
        "outage and recovery: all requests are bad, alerts come in turn and go with the short "
        "window",
        budgets,
        lambda pairs: [
            _burning(30 * MINUTE_S, 0),
            _burning(_quickest(budgets), 1),
            _burning(40 * MINUTE_S, 0),
        ],
    )


def _young(budgets: Budgets) -> Scenario:
    """It was never well: the little there is must do."""
    return _make(
        "young service: bad from its first request on, with less history than any window",
        budgets,
        lambda pairs: [_burning(20 * MINUTE_S, 1)],
    )


def _idle(budgets: Budgets) -> Scenario:
    """Nobody asks any more: no requests are no bad requests, nor good ones."""
    return _make(
        "idle service: without requests alerts end, and start again with the next bad ones",
        budgets,
        lambda pairs: [
            _burning(15 * MINUTE_S, 0),
            _burning(_quickest(budgets), 1),
            Stretch(40 * MINUTE_S, 0.0, 0.0),
            _burning(10 * MINUTE_S, 1),
        ],
    )


def _reset(budgets: Budgets) -> Scenario:
    """The counters start again at 0 in the middle of it."""
    return _make(
        "counter reset: a restart in the middle of an outage changes nothing",
        budgets,
        lambda pairs: [
            _burning(15 * MINUTE_S, 0),
            _burning(_quickest(budgets), 1),
            _burning(_quickest(budgets), 1),
            _burning(15 * MINUTE_S, 0),
        ],
        resets=(2, 3),
    )


def _gap(budgets: Budgets) -> Scenario:
    """The data end while it is bad: that is no recovery.

    Steps are shorter than the five minutes after which Prometheus takes a series for gone.
    """
    longest_s = max(pair.short_s for pairs in budgets.values() for pair in pairs)
    return _make(
        "gap in the data: what fires goes on firing, for 6 h at most",
        budgets,
        lambda pairs: [
            _burning(GAP_STEP_S, 0),
            _burning(_whole(_quickest(budgets), GAP_STEP_S), 1),
            gap(_whole(max(longest_s, FROZEN_AT_MOST_S) + HOUR_S, GAP_STEP_S)),
        ],
        GAP_STEP_S,
        slack_s=3.0 * GAP_STEP_S,
    )


def _around(budgets: Budgets, index: int) -> Iterator[Scenario]:
    """Constant shares of bad requests a little over and a little under a threshold."""
    for word, times in (("over", 1.02), ("under", 0.98)):
        yield _make(
            f"just {word} the threshold of pair {index + 1}",
            budgets,
            lambda pairs, times=times: [  # type: ignore[misc]
                _burning(10 * MINUTE_S, _over(pairs, index, times))
            ],
        )


def _falling(budgets: Budgets, index: int) -> Iterator[Scenario]:
    """Traffic falls: what fills a short window is a small part of any longer one."""
    short_s = max(_at(pairs, index).short_s for pairs in budgets.values())
    interval_s = _interval(_at(pairs, index).short_s for pairs in budgets.values())
    before_s, after_s = (_whole(times * short_s, interval_s) for times in (_BEFORE, _PASSED))
    for word, times in (("goes on", _OVER), ("is over", 0.3)):
        yield _make(
            f"traffic falls while it burns as pair {index + 1} allows no more, and that {word}",
            budgets,
            lambda pairs, times=times: [  # type: ignore[misc]
                _burning(before_s, _over(pairs, index, _OVER)),
                Stretch(after_s, _over(pairs, index, times), REQUESTS_PER_S / BUSY_TIMES),
            ],
            interval_s,
        )


def _over(pairs: Pairs, index: int, times: float) -> float:
    """So many times a threshold, as a share of bad requests."""
    return min(_at(pairs, index).threshold_ratio * times, 1.0)


def _slow_burn(budgets: Budgets, index: int) -> Scenario:
    """A share of bad requests that takes its long window to show, and its short one to go.

    Before, it was busier: a window that is longer or shorter than said counts other requests.
    """
    longest_s = max(_at(pairs, index).long_s for pairs in budgets.values())
    short_s = max(_at(pairs, index).short_s for pairs in budgets.values())
    interval_s = _interval(_at(pairs, index).short_s for pairs in budgets.values())
    quiet_s, bad_s = (_whole(longest_s * share, interval_s) for share in (0.3, 1.2))
    capped = any(_at(p, index).limit is Limit.HALF for p in budgets.values())
    return _make(
        f"slow burn of pair {index + 1}{', a factor that was capped' if capped else ''}",
        budgets,
        lambda pairs: [
            Stretch(quiet_s, 0.0, BUSY_TIMES * REQUESTS_PER_S),
            _burning(bad_s, _over(pairs, index, 1.2)),
            _burning(_whole(short_s, interval_s), 0),
        ],
        interval_s,
    )


def _at(pairs: Pairs, index: int) -> Pair:
    """The pair of this index, or the last."""
    return pairs[min(index, len(pairs) - 1)]


def _burning(for_s: float, bad_ratio: float) -> Stretch:
    return Stretch(for_s, bad_ratio, REQUESTS_PER_S)


def _quickest(budgets: Budgets) -> int:
    """Until all requests bad has fired the quickest alert of every budget, and some time more."""
    slowest_s = max(pairs[0].long_s * pairs[0].threshold_ratio for pairs in budgets.values())
    return _whole(slowest_s * 1.5 + 5 * MINUTE_S, QUICK_S)


def _interval(shorts_s: Iterable[int]) -> int:
    """The longest interval that fits the shortest of these windows three times."""
    shortest_s = min(shorts_s)
    return next((s for s in INTERVALS_S if 3 * s <= shortest_s), QUICK_S)


def _whole(seconds: float, interval_s: int) -> int:
    return round(seconds / interval_s) * interval_s
