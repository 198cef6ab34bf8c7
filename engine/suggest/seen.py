"""What was seen of each class of requests: clocks hour by hour as histograms, and outcomes.

A class is a combination of values of dimensions, such as model and request type. Memory is a
histogram for each class, clock and hour, however many requests there are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine import histogram
from tailburn.engine.grouping import I64
from tailburn.engine.intervals import Bounds, quantile_ranks
from tailburn.engine.rollup import TPOT_MIN_OUTPUT_TOKENS
from tailburn.engine.slo.model import Clock
from tailburn.engine.slo.verdicts import Requests, clock_column, groups_of
from tailburn.engine.suggest.mixed import Mixed

HOUR_NS: Final = 3_600_000_000_000
DAY_NS: Final = 24 * HOUR_NS
CLOCKS: Final = (Clock.TTFT, Clock.TPOT, Clock.E2E)
CALLERS_MISTAKES: Final = (400, 401, 403, 404, 413, 422)
"""Status codes that a caller's own request brings; not 408 or 429, which are the service's."""


@dataclass
class Times:
    """One clock of one class."""

    by_hour: dict[int, I64] = field(default_factory=dict)  # hour of receipt -> counts
    min_s: float = np.inf
    max_s: float = -np.inf

    @property
    def counts(self) -> I64:
        """The histogram of all hours."""
        return np.sum(list(self.by_hour.values()), axis=0, initial=0) + np.zeros(
            histogram.BUCKETS, np.int64
        )

    @property
    def count(self) -> int:
        return int(sum(int(counts.sum()) for counts in self.by_hour.values()))

    def quantile(self, q: float) -> Bounds | None:
        """With its interval, from the ranks that bound it; None where too few are there for one.

        Each figure is within `histogram.RELATIVE_ERROR` besides.
        """
        counts = self.counts
        total = int(counts.sum())
        ranks = quantile_ranks(total, q)
        if ranks.low is None or ranks.high is None:
            return None
        value, low, high = (
            self._at(counts, rank / total) for rank in (q * total, ranks.low, ranks.high)
        )
        return Bounds(value, low, high)

    def by_hour_s(self, q: float, least: int) -> dict[int, float]:
        """The quantile of each hour that has at least so many."""
        return {
            hour: self._at(counts, q)
            for hour, counts in sorted(self.by_hour.items())
            if int(counts.sum()) >= least
        }

    def take(self, hours: I64, values_s: NDArray[np.float64], weight: I64) -> None:
        """More of them: the hour (ns), seconds and weight of each."""
        if not len(hours):
            return
        self.min_s = min(self.min_s, float(values_s.min()))
        self.max_s = max(self.max_s, float(values_s.max()))
        for hour in np.unique(hours).tolist():
            here = hours == hour
            counts = histogram.counts(values_s[here], weight[here])
            self.by_hour[hour] = self.by_hour.get(hour, 0) + counts

    def _at(self, counts: I64, q: float) -> float:
        found = histogram.quantile(counts, min(q, 1.0), self.min_s, self.max_s)
        assert found is not None, "asked of no request"
        return found


@dataclass
class Class:
    """One class of requests, as far as it was seen."""

    values: tuple[str, ...]
    requests: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # own mistakes of callers left out
    mistakes: Counter[int] = field(default_factory=Counter)  # by status
    hours: set[int] = field(default_factory=set)
    mixed: Mixed = field(default_factory=Mixed)
    times: dict[Clock, Times] = field(default_factory=lambda: {clock: Times() for clock in CLOCKS})

    def measured_ratio(self, clock: Clock) -> float:
        """Which share of the requests has the clock."""
        return self.times[clock].count / self.requests if self.requests else 0.0


class Seen:
    """All classes of the requests that were handed in."""

    def __init__(self, by: Sequence[str], vantage: str) -> None:
        self.by, self.vantage = tuple(by), vantage
        self._classes: dict[tuple[str, ...], Class] = {}

    def take(self, rows: pa.Table) -> None:
        """Rows of REQUESTS, first versions."""
        if not len(rows):
            return
        values, group = groups_of(rows, self.by)
        requests = Requests(rows)
        hours = rows["received_ns"].to_numpy() // HOUR_NS * HOUR_NS
        for number, own in enumerate(values):
            self._take(self._of(own), requests, np.flatnonzero(group == number), hours)

    def classes(self) -> Iterator[Class]:
        """The busiest first."""
        yield from sorted(self._classes.values(), key=lambda one: (-one.requests, one.values))

    def _of(self, values: tuple[str, ...]) -> Class:
        return self._classes.setdefault(values, Class(values))

    def _take(self, own: Class, requests: Requests, rows: I64, hours: I64) -> None:
        weight = requests.weight
        own.requests += int(weight[rows].sum())
        own.hours.update(np.unique(hours[rows]).tolist())
        own.mixed.take(requests, rows)
        self._take_outcomes(own, requests, rows, weight)
        for clock, times in own.times.items():
            value = requests.number(clock_column(clock, self.vantage))[rows]
            there = (value >= 0) & (value < np.inf)
            if clock is Clock.TPOT:
                there &= requests.number("output_tokens")[rows] >= TPOT_MIN_OUTPUT_TOKENS
            chosen = rows[there]
            times.take(hours[chosen], value[there], weight[chosen])

    def _take_outcomes(self, own: Class, requests: Requests, rows: I64, weight: I64) -> None:
        status = requests.number("http_status")[rows]
        mistake = np.isin(status, CALLERS_MISTAKES)
        for code in np.unique(status[mistake]).astype(int).tolist():
            own.mistakes[code] += int(weight[rows[status == code]].sum())
        for outcome in ("ok", "error", "cancelled", "unknown"):
            here = requests.equal("outcome", outcome)[rows] & ~mistake
            own.outcomes[outcome] += int(weight[rows[here]].sum())
