"""The load that each request met, in the order they close."""

from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.baseline.arrivals import SLOT_NS, SLOTS, Arrivals
from tailburn.engine.baseline.hits import Hits
from tailburn.engine.baseline.load import Matched, hit_bin
from tailburn.engine.baseline.pooling import series_of
from tailburn.engine.grouping import I64, weights
from tailburn.engine.names import UNKNOWN

PLACE: Final = ("service", "pool", "model", "replica")
"""What a load is of: all requests that the same replica serves."""
LOOKED_BACK_NS: Final = (SLOTS + 1) * SLOT_NS
"""So long before a request the load that it met can begin."""


class Loads:
    """Counts requests by place and 10 s as they close, and looks up what each of them met.

    That is the load of its place, and the prefix-hit ratio of its pool (`hits`).
    """

    def __init__(self, arrivals: Arrivals | None = None, hits: Hits | None = None) -> None:
        self.arrivals = arrivals or Arrivals()
        self.hits = hits or Hits()

    @classmethod
    def since(cls, begin_ns: int) -> "Loads":
        """Of requests of which those from a time on are there, seldom as they may be."""
        slot = -(-begin_ns // SLOT_NS)
        return cls(Arrivals(slot, slot - 1))

    def slots(self, received_ns: I64) -> I64:
        """The slot that each request counts to, in their order.

        One that comes after a request of a later slot counts to that, unless the clock was set
        back: by more than the load looks back.
        """
        slot, last = received_ns // SLOT_NS, self.arrivals.slot
        begin = 0
        while begin < len(slot):
            rest = np.maximum.accumulate(np.concatenate([[last], slot[begin:]]))[1:]
            back = np.flatnonzero(slot[begin:] < rest - SLOTS)
            end = begin + int(back[0]) if len(back) else len(slot)
            whole = rest[: end - begin]
            if end < len(slot):
                last = int(slot[end])
            slot[begin:end] = whole
            begin = end
        return slot

    def met(self, rows: pa.Table, slot: I64) -> Matched:
        """The load that each request met; it is then counted to it."""
        places, place = series_of(rows, PLACE)
        pools = [(model, "" if pool == UNKNOWN else pool) for _, pool, model, _ in places]
        weight = weights(rows)
        rate, hits = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        ends = [0, *(np.flatnonzero(np.diff(slot)) + 1).tolist(), len(rows)] if len(rows) else []
        for begin, end in zip(ends, ends[1:], strict=False):
            self.arrivals.begin(int(slot[begin]))
            here = place[begin:end]
            met = np.unique(here)
            of_place = np.zeros(len(places))
            of_place[met] = self.arrivals.rates_per_s([places[i] for i in met.tolist()])
            rate[begin:end] = of_place[here]
            of_place[met] = self.hits.ratios([pools[i] for i in met.tolist()], int(slot[begin]))
            hits[begin:end] = of_place[here]
            counts = np.rint(np.bincount(here, weight[begin:end])).astype(np.int64)
            for i in met.tolist():
                self.arrivals.add(places[i], int(counts[i]))
        return Matched(rate, hit_bin(hits))
