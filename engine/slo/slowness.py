"""What slow requests took over the baseline, and in which hop: counters of seconds.

Slow is what is bad in the budget of the time to the first token. The baseline is the mean of the
requests that are not, of about as many uncached prompt tokens, over the last hour or so: what
is older counts half with every hour. It is learnt from the minutes before the one that a request
closed in, so the counters don't depend on how rows are split. Until there is one, nothing counts.

A counter can't go down, so a hop that was quicker than its baseline counts nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tailburn.engine.excess import MIN_BASELINE, PLACES, Mask, measure
from tailburn.engine.grouping import F64, I64
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.model import Clock, Objective, Slo, objectives

HALF_LIFE_MINUTES: Final = 60
_EVERY: Final = "all"


def objective_of(slo: Slo) -> Objective | None:
    """The budget that says which requests are slow: the widest of the time to first token."""
    found = [o for o in objectives(slo) if o.clock is Clock.TTFT]
    return max(found, key=lambda o: o.budget_ratio, default=None)


@dataclass
class _Sums:
    """Requests and their nanoseconds per hop; by stratum of prompt tokens, and `all`.

    Sums of a minute are whole numbers, so they are exact in any order.
    """

    count: dict[str, float] = field(default_factory=dict)
    hop_ns: dict[str, F64] = field(default_factory=dict)

    def add(self, stratum: str, count: float, hop_ns: F64) -> None:
        self.count[stratum] = self.count.get(stratum, 0.0) + count
        self.hop_ns[stratum] = self.hop_ns.get(stratum, np.zeros(len(PLACES))) + hop_ns

    def take_in(self, newer: "_Sums") -> None:
        for stratum, count in newer.count.items():
            self.add(stratum, count, newer.hop_ns[stratum])

    def fade(self, share: float) -> None:
        """Keep a share of everything."""
        for stratum in self.count:
            self.count[stratum] *= share
            self.hop_ns[stratum] = self.hop_ns[stratum] * share

    def mean_ns(self, stratum: str) -> F64 | None:
        """Of the stratum, or of all where it has too few; None without enough of either."""
        for name in (stratum, _EVERY):
            if self.count.get(name, 0.0) >= MIN_BASELINE:
                mean: F64 = self.hop_ns[name] / self.count[name]
                return mean
        return None

    def state(self) -> dict[str, Any]:
        return {name: [self.count[name], self.hop_ns[name].tolist()] for name in self.count}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "_Sums":
        count = {name: count for name, (count, _) in state.items()}
        return cls(count, {name: np.array(hop_ns) for name, (_, hop_ns) in state.items()})


@dataclass(frozen=True)
class Times:
    """Requests with a first token: where the time up to it went, in whole nanoseconds."""

    row: I64  # of the table they are from
    minute: I64  # in which they closed
    hop_ns: I64  # (n, places)
    weight: I64
    prompt: I64  # stratum of uncached prompt tokens

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: slice | Mask) -> "Times":
        return Times(
            self.row[chosen], self.minute[chosen], self.hop_ns[chosen], self.weight[chosen],
            self.prompt[chosen],
        )  # fmt: skip


def times_of(requests: pa.Table) -> Times:
    """Of rows of REQUESTS."""
    found = measure(requests, "ttft")
    minute = requests["received_ns"].to_numpy()[found.row] // MINUTE_NS
    return Times(found.row, minute, found.hop_ns, found.weight, found.prompt)


@dataclass(frozen=True)
class Slow:
    """What slow requests of a minute took over the baseline."""

    minute_ns: int
    by_place_ns: I64
    excess_ns: int


@dataclass
class Slowness:
    """Of one budget and one combination of the values of `by`."""

    slow_ns: I64 = field(default_factory=lambda: np.zeros(len(PLACES), np.int64))  # by place
    excess_ns: int = 0
    _minute: int = 0
    _past: _Sums = field(default_factory=_Sums)
    _current: _Sums = field(default_factory=_Sums)

    def add(self, times: Times, is_slow: Mask) -> list[Slow]:
        """Requests with a verdict, in the order they closed; what they added, by minute."""
        ends = [*(np.flatnonzero(np.diff(times.minute)) + 1).tolist(), len(times)]
        added, begin = [], 0
        for end in ends:
            if end > begin:
                minute, of_minute = int(times.minute[begin]), slice(begin, end)
                self._begin_minute(minute)
                slow_ns, excess_ns = self._add_minute(times.part(of_minute), is_slow[of_minute])
                self.slow_ns = self.slow_ns + slow_ns
                self.excess_ns += excess_ns
                added.append(Slow(minute * MINUTE_NS, slow_ns, excess_ns))
            begin = end
        return added

    def state(self) -> list[Any]:
        """All of it, as JSON can hold it."""
        return [
            self.slow_ns.tolist(), self.excess_ns, self._minute,
            self._past.state(), self._current.state(),
        ]  # fmt: skip

    @classmethod
    def restore(cls, state: list[Any]) -> "Slowness":
        slow_ns, excess_ns, minute, past, current = state
        sums = _Sums.restore(past), _Sums.restore(current)
        return cls(np.array(slow_ns, np.int64), excess_ns, minute, *sums)

    def _begin_minute(self, minute: int) -> None:
        if minute <= self._minute:
            return
        self._past.take_in(self._current)
        self._past.fade(0.5 ** ((minute - self._minute) / HALF_LIFE_MINUTES))
        self._minute, self._current = minute, _Sums()

    def _add_minute(self, times: Times, slow: Mask) -> tuple[I64, int]:
        slow_ns, excess_ns = np.zeros(len(PLACES), np.int64), 0
        for stratum in np.unique(times.prompt).tolist():
            here, name = times.prompt == stratum, str(stratum)
            quick = here & ~slow
            hop_ns = (times.weight[quick] @ times.hop_ns[quick]).astype(np.float64)
            for into in (name, _EVERY):
                self._current.add(into, float(times.weight[quick].sum()), hop_ns)
            mean_ns = self._past.mean_ns(name)
            if mean_ns is None:
                continue
            over = times.hop_ns[here & slow] - np.rint(mean_ns).astype(np.int64)
            weight = times.weight[here & slow]
            slow_ns += weight @ np.maximum(over, 0)
            excess_ns += int(weight @ np.maximum(over.sum(axis=1), 0))
        return slow_ns, excess_ns
