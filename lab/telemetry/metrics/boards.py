"""What all kinds of targets have in common: signals at each scrape, streams of observations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.metrics.rows import Rows
from tailburn.lab.telemetry.metrics.tally import Seen

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Signals = Mapping[str, Sequence[F64] | F64]
"""By name: for each target an array [scrape], or [scrape, item]."""


class Board(Protocol):
    """All targets of a kind. Streams whose name begins with `each_` count by replica."""

    def observe(self, attempts: Attempts) -> Iterable[tuple[str, Seen]]:
        """What is counted of attempts that are over, by the name of its stream."""
        ...

    def signals(self, rows: Rows) -> Signals:
        """Values at each scrape; feeds in order."""
        ...

    def began_ns(self, rows: Rows) -> I64:
        """[scrape, target] when its process began, before the run very negative."""
        ...

    def late_s(self, rows: Rows) -> F64:
        """[scrape, target] by how much its answer is late; NaN: it takes no connection."""
        ...


FOREVER_AGO = -(1 << 62)


def always(rows: Rows, targets: int) -> I64:
    """Processes that were there before the run and stay."""
    return np.full((len(rows), targets), FOREVER_AGO, np.int64)


def prompt(rows: Rows, targets: int) -> F64:
    """Targets that answer at once."""
    return np.zeros((len(rows), targets))


class Grown:
    """Counters made of increments: they never fall, however feeds are cut."""

    def __init__(self) -> None:
        self._at: dict[str, F64] = {}

    def of(self, name: str, increments: F64, first: "float | F64" = 0.0) -> F64:
        """The counter [scrape, ...] of what it grew by at each scrape."""
        begun = self._at.get(name, np.zeros(increments.shape[1:]) + first)
        total = np.cumsum(increments, axis=0) + begun
        if len(total):
            self._at[name] = total[-1].copy()
        return np.asarray(total, np.float64)

    def peak(self, name: str, values: F64, anew: "NDArray[np.bool_]") -> F64:
        """The largest so far since its process began: a counter out of two that lag."""
        out = values.copy()
        last = self._at.get(name, np.zeros(values.shape[1:]))
        for r in range(len(out)):
            last = np.maximum(out[r], np.where(anew[r], 0.0, last))
            out[r] = last
        self._at[name] = last
        return out


def picked(attempts: Attempts, which: "NDArray[np.bool_]") -> Attempts:
    """Some of them; all as they are."""
    return attempts if which.all() else attempts.take(which)


def seconds(ns: Any) -> F64:
    """Nanoseconds as seconds, never negative."""
    return np.asarray(np.maximum(np.asarray(ns, np.float64), 0.0) / 1e9, np.float64)


def first_of(*instants: Any) -> I64:
    """The first of them that happened, in the order given; -1 where none did."""
    found = np.asarray(instants[0], np.int64)
    for other in instants[1:]:
        found = np.where(found >= 0, found, other)
    return found
