"""How often each series was late in an hour: one that often was is no baseline for others.

That it was late counts here only against what a day or more was learnt of: what is new, a model
or a load, has to be learnt first. A change that lasts is learnt after a day.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine.baseline.pooling import Series, keys_of, parents
from tailburn.engine.grouping import F64, numbers, weights
from tailburn.engine.schema import USUAL_DIMENSIONS

Mask = NDArray[np.bool_]

LATE_RATIO: Final = 0.03
LATE_COUNT: Final = 10
"""What the alert asks of half an hour."""
LASTS_HOURS: Final = 24
ENOUGH: Final = 300
"""With fewer requests the share of a series is decided by its parent's."""


class Lateness:
    """Requests with a deadline, and late ones of these, of each series in one hour."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._hours: dict[tuple[str, ...], int] = {}  # left out one after another until now

    def add(
        self, series: Series, requests: pa.Table, deadlines: Mapping[str, tuple[F64, Mask]]
    ) -> None:
        """Count requests of the hour. `deadlines` in s of each clock, and which are settled."""
        judged = np.zeros(len(requests), np.bool_)
        late = np.zeros(len(requests), np.bool_)
        for clock, (limit_s, settled) in deadlines.items():
            value = numbers(requests.column(clock), np.nan)
            judged |= ~np.isnan(value) & ~np.isnan(limit_s)
            late |= (value > limit_s) & settled
        weight = weights(requests)
        names, own = series
        both = [np.bincount(own[m], weight[m], len(names)).astype(int) for m in (judged, late)]
        for name, with_deadline, missed in zip(names, *(b.tolist() for b in both), strict=True):
            if with_deadline:
                counts = self._counts.setdefault(name, [0, 0])
                counts[0] += with_deadline
                counts[1] += missed

    def end_hour(self, cells: pa.Table) -> Mask:
        """Which cells of the hour are of a series that was late too often; the next one begins."""
        series, own = keys_of(cells, USUAL_DIMENSIONS)
        columns = (series.column(name).to_pylist() for name in USUAL_DIMENSIONS)
        names = list(zip(*columns, strict=True))
        often = self._often_late(series, names)
        before = [self._hours.get(name, 0) for name in names]
        out = often & (np.array(before, np.int64) < LASTS_HOURS)
        self._hours = {
            name: hours + 1
            for name, hours, is_late in zip(names, before, often.tolist(), strict=True)
            if is_late
        }
        self._counts = {}
        return out[own]

    def _often_late(self, series: pa.Table, names: list[tuple[str, ...]]) -> Mask:
        counts = np.array([self._counts.get(name, [0, 0]) for name in names], np.int64)
        out = np.zeros(len(series), np.bool_)
        open_ = np.ones(len(series), np.bool_)
        tree = parents(series, USUAL_DIMENSIONS)
        for level, (_, group, size) in enumerate(tree):
            sums = np.zeros((size, 2), np.int64)
            np.add.at(sums, group, counts.reshape(-1, 2))
            judged, late = sums[group].T
            decides = open_ & ((judged >= ENOUGH) | (level == len(tree) - 1))
            out |= decides & (late >= LATE_COUNT) & (late >= LATE_RATIO * judged)
            open_ &= ~decides
        return out

    def state(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {
            "counts": [[list(key), counts] for key, counts in sorted(self._counts.items())],
            "hours": [[list(key), hours] for key, hours in sorted(self._hours.items())],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Lateness":
        """What `state` gave."""
        found = cls()
        found._counts = {tuple(key): list(counts) for key, counts in state["counts"]}
        found._hours = {tuple(key): hours for key, hours in state["hours"]}
        return found
