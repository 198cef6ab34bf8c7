"""The prefix-hit ratio of each pool, from the metrics of its engines, as it was before a request.

Tokens found in the prefix cache over tokens looked up there, of all replicas of a model, in
slots of 10 s as they are read. An engine that tells a ratio alone counts as one token a
reading, which is of no weight where tokens are told. Like the load, the ratio that a request
meets is that of the 5 min of slots before its own: the same whenever the request is seen.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.baseline.arrivals import SLOT_NS, SLOTS
from tailburn.engine.grouping import F64

RATIO: Final = "prefix_cache_hit_ratio"
FOUND: Final = "prefix_cache_hit_tokens"
LOOKED_UP: Final = "prefix_cache_query_tokens"
SIGNALS: Final = (RATIO, FOUND, LOOKED_UP)
READ_BEFORE_NS: Final = 150_000_000_000
"""A target that was not read for so long has no increase, and no ratio."""
_KEPT_SLOTS: Final = 360
_FOUND_IN, _LOOKED_UP_IN = 0, 1

Pool = tuple[str, str]
"""Model, and the pool where metrics tell it; empty where they don't."""
_Series = tuple[str, str, str, str, str]  # name, labels, tenant, service, resource


@dataclass
class Hits:
    """Fed with rows of SIGNALS in the order in which they were read."""

    _slots: dict[int, dict[Pool, list[float]]] = field(default_factory=dict)
    _last: dict[_Series, tuple[int, float]] = field(default_factory=dict)  # slot, value

    def hear(self, signals: pa.Table) -> None:
        """Take readings; what is an hour older is forgotten."""
        rows = signals.filter(pc.is_in(signals["name"].cast(pa.string()), pa.array(SIGNALS)))
        columns = ("name", "labels", "tenant", "service", "resource", "received_ns", "value")
        for *series, at_ns, value in zip(*(rows[c].to_pylist() for c in columns), strict=True):
            name, labels, tenant, service, resource = (str(part or "") for part in series)
            self._take((name, labels, tenant, service, resource), at_ns // SLOT_NS, float(value))
        if len(rows):
            self._forget(int(rows["received_ns"][-1].as_py()) // SLOT_NS)

    def ratios(self, pools: Sequence[Pool], slot: int) -> F64:
        """What a request of each pool and slot meets; nan where no metric tells."""
        sums: dict[Pool, list[float]] = {}
        for before in range(slot - SLOTS, slot):
            for pool, (found, asked) in self._slots.get(before, {}).items():
                known = sums.setdefault(pool, [0.0, 0.0])
                known[_FOUND_IN] += found
                known[_LOOKED_UP_IN] += asked
        return np.array([_ratio(sums.get(p) or sums.get((p[0], ""))) for p in pools], np.float64)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {
            "slots": [
                [slot, [[*pool, *sums] for pool, sums in sorted(pools.items())]]
                for slot, pools in sorted(self._slots.items())
            ],
            "last": [[*series, *last] for series, last in sorted(self._last.items())],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Hits":
        """What `state` gave."""
        slots = {
            slot: {(model, pool): sums for model, pool, *sums in pools}
            for slot, pools in state["slots"]
        }
        last = {tuple(series): (slot, value) for *series, slot, value in state["last"]}
        return cls(slots, last)

    def _take(self, series: _Series, slot: int, value: float) -> None:
        told = json.loads(series[1] or "{}")
        if not (model := told.get("model")) or not np.isfinite(value):
            return
        sums = self._slots.setdefault(slot, {}).setdefault(
            (model, told.get("pool", "")), [0.0, 0.0]
        )
        if series[0] == RATIO:
            sums[_FOUND_IN] += value
            sums[_LOOKED_UP_IN] += 1
            return
        place = _FOUND_IN if series[0] == FOUND else _LOOKED_UP_IN
        before = self._last.get(series)
        self._last[series] = slot, value
        if before is not None and 0 <= slot - before[0] <= READ_BEFORE_NS // SLOT_NS:
            sums[place] += value - before[1] if value >= before[1] else value

    def _forget(self, slot: int) -> None:
        """Of this time on, also where the clock was set back."""
        self._slots = {s: p for s, p in self._slots.items() if slot - _KEPT_SLOTS < s <= slot}
        self._last = {k: v for k, v in self._last.items() if slot - _KEPT_SLOTS < v[0] <= slot}


def _ratio(sums: Sequence[float] | None) -> float:
    if not sums or sums[_LOOKED_UP_IN] <= 0:
        return np.nan
    return min(sums[_FOUND_IN] / sums[_LOOKED_UP_IN], 1.0)
