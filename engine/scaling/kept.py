"""Values of the last minutes, a column for each series; nan where nothing was known."""

from collections.abc import Sequence

import numpy as np

from tailburn.engine.grouping import F64, I64

Values = tuple[str, ...]


class Columns:
    """The series of an SLO, by the values of its `by`: the union of what several sources list."""

    def __init__(self) -> None:
        self.by: list[Values] = []
        self._known: dict[Values, int] = {}
        self._of: dict[str, I64] = {}

    def __len__(self) -> int:
        return len(self.by)

    def of(self, source: str, by: Sequence[Values]) -> I64:
        """The columns of a source's series; its list may only have grown since the last call."""
        found = self._of.get(source, np.zeros(0, np.int64))
        if len(by) > len(found):
            new = [self.column(values) for values in by[len(found) :]]
            found = self._of[source] = np.append(found, new)
        return found

    def column(self, values: Values) -> int:
        """A column for good."""
        if values not in self._known:
            self._known[values] = len(self.by)
            self.by.append(values)
        return self._known[values]


class Kept:
    """One value of each series at each of the last `minutes`; times are minutes since the epoch."""

    def __init__(self, minutes: int) -> None:
        self._at: I64 = np.full(minutes + 1, -1)
        self._values: F64 = np.full((minutes + 1, 0), np.nan)

    def put(self, now: int, values: F64) -> None:
        """What is known at a minute; of series that are new nothing was known before."""
        lacking = len(values) - self._values.shape[1]
        if lacking > 0:
            wider = np.full((len(self._at), lacking), np.nan)
            self._values = np.concatenate([self._values, wider], axis=1)
        row = now % len(self._at)
        self._at[row] = now
        self._values[row] = values

    def within(self, minutes: int, now: int) -> F64:
        """Up to a minute, from so many before it on, both included: (evaluations, series)."""
        held = (self._at >= now - minutes) & (self._at <= now)
        return self._values[held]


def least(window: F64) -> F64:
    """Of each series; nan where nothing is known."""
    return _or_nan(np.where(np.isnan(window), np.inf, window).min(axis=0, initial=np.inf))


def most(window: F64) -> F64:
    """Of each series; nan where nothing is known."""
    return _or_nan(np.where(np.isnan(window), -np.inf, window).max(axis=0, initial=-np.inf))


def known(window: F64) -> I64:
    """How many values of each series are known."""
    return np.asarray((~np.isnan(window)).sum(axis=0))


def _or_nan(values: F64) -> F64:
    return np.where(np.isinf(values), np.nan, values)
