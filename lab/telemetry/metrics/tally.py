"""Counts of what was observed, as histograms and counters of many targets at once.

A stream is a named series of observations: when, at which target, how large, how often. A tally
counts a stream into bounds; it starts anew at a target whose process does.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Seen:
    """Observations, one a row, in no order."""

    at_ns: I64
    target: I64
    value: F64
    weight: F64
    """How many there are of it."""

    def __len__(self) -> int:
        return len(self.at_ns)

    @classmethod
    def of(
        cls,
        at_ns: "NDArray[np.integer]",
        target: "NDArray[np.integer]",
        value: "NDArray[np.number]",
        weight: "F64 | None" = None,
    ) -> "Seen":
        """Of arrays of one length; once each without a weight."""
        times = np.asarray(at_ns, np.int64)
        each = np.ones(len(times)) if weight is None else np.asarray(weight, np.float64)
        return cls(times, np.asarray(target, np.int64), np.asarray(value, np.float64), each)

    @classmethod
    def join(cls, parts: "list[Seen]") -> "Seen":
        """One below the other."""
        return cls(
            np.concatenate([p.at_ns for p in parts]),
            np.concatenate([p.target for p in parts]),
            np.concatenate([p.value for p in parts]),
            np.concatenate([p.weight for p in parts]),
        )

    def take(self, which: "NDArray[np.bool_]") -> "Seen":
        """Some of them."""
        return Seen(self.at_ns[which], self.target[which], self.value[which], self.weight[which])


NONE = Seen(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


@dataclass
class Pending:
    """Observations of a stream that no scrape has seen yet."""

    waiting: list[Seen] = field(default_factory=list)

    def add(self, seen: Seen) -> None:
        if len(seen):
            self.waiting.append(seen)

    def until(self, at_ns: int) -> Seen:
        """Those up to an instant; they wait no longer."""
        if not self.waiting:
            return NONE
        seen = Seen.join(self.waiting)
        due = seen.at_ns <= at_ns
        rest = seen.take(~due)
        self.waiting = [rest] if len(rest) else []
        return seen.take(due)


@dataclass
class Tally:
    """A stream counted into bounds, for `targets` targets."""

    bounds: tuple[float, ...]
    targets: int
    counts: F64 = field(init=False)
    sums: F64 = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.targets, len(self.bounds) + 1))
        self.sums = np.zeros(self.targets)

    def take(
        self, seen: Seen, at_ns: I64, began_ns: I64, anew: "NDArray[np.bool_]"
    ) -> tuple[F64, F64]:
        """Counts [scrape, target, bin] and sums [scrape, target] at these scrapes.

        `began_ns` [scrape, target]: when its process began; `anew`: it did since the scrape
        before. What was observed by a process that is gone is gone with it.
        """
        rows, bins = len(at_ns), len(self.bounds) + 1
        counts = np.zeros((rows, self.targets, bins))
        sums = np.zeros((rows, self.targets))
        if len(seen):
            row = np.searchsorted(at_ns, seen.at_ns, "left")
            kept = seen.at_ns >= began_ns[row, seen.target]
            if not kept.all():
                seen, row = seen.take(kept), row[kept]
            where = row * self.targets + seen.target
            in_bin = np.searchsorted(np.asarray(self.bounds), seen.value, "left")
            counts += np.bincount(
                where * bins + in_bin, seen.weight, rows * self.targets * bins
            ).reshape(counts.shape)
            sums += np.bincount(where, seen.weight * seen.value, rows * self.targets).reshape(
                sums.shape
            )
        total, total_sum = self.counts, self.sums
        for r in range(rows):
            if anew[r].any():
                total = np.where(anew[r][:, None], 0.0, total)
                total_sum = np.where(anew[r], 0.0, total_sum)
            total, total_sum = total + counts[r], total_sum + sums[r]
            counts[r], sums[r] = total, total_sum
        self.counts, self.sums = total, total_sum
        return counts, sums
