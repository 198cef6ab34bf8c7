"""Which shares of bad requests stay too large for as long as an alert waits, minute by minute."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.backtest.burning import Spans, minutes_in
from tailburn.engine.backtest.minutes import Counts
from tailburn.engine.evaluation.shares import Share
from tailburn.engine.grouping import I64
from tailburn.engine.slo.burn import MINUTE_S


@dataclass(frozen=True)
class Waiting:
    """An alert on one share of bad requests that waits `for_s` with it."""

    share: Share
    for_s: int


def lasting(
    counts: Iterable[Counts], alerts: Mapping[tuple[str, str], Waiting], holes: Spans = ()
) -> set[tuple[str, str]]:
    """SLO and objective, as `alerts` has them, of those that would have fired.

    `holes`: spans of ns, whole minutes, of which nothing was kept; none is judged in them.
    """
    return {
        (one.slo.name, one.objective.name)
        for one in counts
        if (alert := alerts.get((one.slo.name, one.objective.name))) is not None
        and _fires(one, alert, holes)
    }


def _fires(counts: Counts, alert: Waiting, holes: Spans) -> bool:
    window = alert.share.window_s // MINUTE_S
    requests, bad = (_over(window, each).astype(float) for each in (counts.requests, counts.bad))
    with np.errstate(divide="ignore", invalid="ignore"):
        over = alert.share.is_over(requests, bad, bad / requests)
    judged = over[~minutes_in(holes, counts.since_ns, len(counts))]
    return _longest(judged) > alert.for_s // MINUTE_S


def _over(window: int, each: I64) -> I64:
    """Sums of the last minutes, at the end of every minute."""
    sums = np.cumsum(each)
    sums[window:] -= sums[:-window].copy()
    return sums


def _longest(mask: NDArray[np.bool_]) -> int:
    """Of its runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask, [0]))))
    return int(np.max(edges[1::2] - edges[::2], initial=0))
