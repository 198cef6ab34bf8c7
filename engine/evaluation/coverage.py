"""When the service was counting: what tells a gap in the data from a time without requests.

A point is a whole minute at which the counters were known, as at a scrape. A window can be rated
where it has two of them, as Prometheus has it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.evaluation.windows import MINUTE_S, SAMPLED_S, SLOW_S
from tailburn.engine.grouping import I64

NEVER: Final = np.int64(1 << 60)
_SAMPLED: Final = SAMPLED_S // MINUTE_S
_SLOW: Final = SLOW_S // MINUTE_S


class Coverage:
    """All times are minutes since the epoch; births are those at which series began."""

    def __init__(self) -> None:
        self.points: I64 = np.zeros(0, np.int64)
        self._rated: dict[int, I64] = {}

    def cover(self, minutes: I64) -> None:
        """The counters were known at the begin and at the end of each of these minutes."""
        self.know(np.union1d(minutes, minutes + 1))

    def know(self, known: I64) -> None:
        """The counters were known at these points."""
        if np.isin(known, self.points).all():
            return
        self.points = np.union1d(self.points, known)
        self._rated = {}

    def trim(self, before: int) -> None:
        """Forget the points before a minute."""
        first = np.searchsorted(self.points, before)
        if first:
            self.points = self.points[first:]
            self._rated = {}

    def is_rated(self, window: int, now: int, births: I64) -> NDArray[np.bool_]:
        """Whether a window that ends now has two points of a series."""
        begin = np.searchsorted(self.points, np.maximum(now - window, births))
        end = np.searchsorted(self.points, now, side="right")
        return np.asarray(end - begin >= 2)

    def sampled(self, since: int, until: int, births: I64) -> I64:
        """At how many multiples of four minutes in [since, until] five minutes can be rated."""
        times = self._rated_at(_SLOW)
        begin = np.searchsorted(times, np.maximum(self._second(births), since))
        end = np.searchsorted(times, until, side="right")
        return np.maximum(end - begin, 0)

    def is_remembered(self, within: int, now: int, birth: int, every_s: int) -> bool:
        """Whether five minutes could be rated at one of the last multiples of `every_s`."""
        times = self._rated_at(every_s // MINUTE_S)
        end = np.searchsorted(times, now, side="right")
        known = self._second(np.array([birth]))[0]
        return bool(end and times[end - 1] >= max(now - within, known))

    def _second(self, births: I64) -> I64:
        """The second point of each series: from then on there is a rate."""
        padded = np.append(self.points, [NEVER, NEVER])
        return np.asarray(padded[np.searchsorted(self.points, births) + 1])

    def _rated_at(self, every: int) -> I64:
        """The multiples of so many minutes at which five minutes can be rated."""
        if every not in self._rated:
            self._rated[every] = self._rated_now(every)
        return self._rated[every]

    def _rated_now(self, every: int) -> I64:
        if len(self.points) < 2:
            return np.zeros(0, np.int64)
        first, last = -(-int(self.points[0]) // every) * every, int(self.points[-1]) + _SAMPLED
        times = np.arange(first, last + 1, every)
        count = np.searchsorted(self.points, times, side="right")
        count = count - np.searchsorted(self.points, times - _SAMPLED)
        return times[count >= 2]
