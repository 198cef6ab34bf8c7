"""Offsets between hosts' clocks, pooled per pair over a sliding window.

Each call from a host to a server bounds the server's clock against the caller's: the server
can't start before the call, nor (by the caller's clock) after the answer. Bounds of many
calls are intersected, trimmed once there are enough of them; half the width that remains is
the honest error. Where zero is possible it is taken: no correction without evidence.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined, inner
from tailburn.collector.stitch.layout import HOST, RECEIVED, SERVICE, START
from tailburn.collector.stitch.tree import mix
from tailburn.engine.compiled import Int

SAMPLES = 256
WINDOW_NS = 300 * 1_000_000_000
TRIM_FROM = 20
TRIM_RATIO = 0.05
PAIRS = 4096
"""Pairs kept; later ones go uncorrected with an unknown width."""

UNKNOWN_WIDTH_NS = -1
MOST_CLOCKS = 8
"""Clocks of one unit that are compared; spans of further ones are read as they are."""

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


class OffsetPool:
    """The bounds seen of every (caller's clock, server's clock) pair, in flat arrays.

    Clocks are numbers: a host's dictionary code, or minus a service's code where no span
    names a host.
    """

    def __init__(self) -> None:
        self.pair = np.zeros((PAIRS, 2), np.int64)
        self.low_ns = np.zeros((PAIRS, SAMPLES), np.int64)
        self.high_ns = np.zeros((PAIRS, SAMPLES), np.int64)
        self.at_ns = np.zeros((PAIRS, SAMPLES), np.int64)
        self.seen = np.zeros(PAIRS, np.int64)
        self.estimate = np.zeros((PAIRS, 3), np.int64)  # offset, half width, `seen` at that time

    def arrays(self) -> tuple[I64, I64, I64, I64, I64, I64]:
        """What the compiled functions take."""
        return self.pair, self.low_ns, self.high_ns, self.at_ns, self.seen, self.estimate

    def state(self) -> dict[str, I64]:
        """The used part, for a snapshot."""
        used = np.flatnonzero(self.seen)
        return {
            "pool_slot": used,
            "pool_pair": self.pair[used],
            "pool_low_ns": self.low_ns[used],
            "pool_high_ns": self.high_ns[used],
            "pool_at_ns": self.at_ns[used],
            "pool_seen": self.seen[used],
        }

    def restore(self, state: dict[str, I64]) -> None:
        """Take over what `state` gave."""
        used = state["pool_slot"]
        self.pair[used] = state["pool_pair"]
        self.low_ns[used] = state["pool_low_ns"]
        self.high_ns[used] = state["pool_high_ns"]
        self.at_ns[used] = state["pool_at_ns"]
        self.seen[used] = state["pool_seen"]


@inlined
def _slot(pair: I64, seen: I64, caller: Int, server: Int, insert: bool) -> Int:
    j = mix(caller * 1_000_003 + server, 7) & (PAIRS - 1)
    for _ in range(64):
        if pair[j, 0] == caller and pair[j, 1] == server and seen[j] > 0:
            return j
        if seen[j] == 0:
            if insert:
                pair[j, 0] = caller
                pair[j, 1] = server
                return j
            return -1
        j = (j + 1) & (PAIRS - 1)
    return -1


@inlined
def observe(
    pair: I64, low_ns: I64, high_ns: I64, at_ns: I64, seen: I64, estimate: I64,
    caller: Int, server: Int, low: Int, high: Int, now_ns: Int,
) -> None:  # fmt: skip
    """Note that the server's clock minus the caller's lies in `[low, high]`."""
    j = _slot(pair, seen, caller, server, True)
    if j < 0:
        return
    i = seen[j] % SAMPLES
    low_ns[j, i] = low
    high_ns[j, i] = high
    at_ns[j, i] = now_ns
    seen[j] += 1
    if not low <= estimate[j, 0] <= high:
        estimate[j, 2] = 0  # a clock may have been set: what was found before is to be found anew


@inlined
def offset_of(
    pair: I64, low_ns: I64, high_ns: I64, at_ns: I64, seen: I64, estimate: I64,
    caller: Int, server: Int, now_ns: Int,
) -> tuple[Int, Int]:  # fmt: skip
    """(offset, half width) in ns of the server's clock against the caller's.

    Half width is UNKNOWN_WIDTH_NS, and the offset 0, for a pair not seen within the window.
    """
    j = _slot(pair, seen, caller, server, False)
    if j < 0 or now_ns - at_ns[j, (seen[j] - 1) % SAMPLES] > WINDOW_NS:
        return 0, UNKNOWN_WIDTH_NS
    fresh = seen[j] - estimate[j, 2]
    if fresh > 0 and (seen[j] < TRIM_FROM or fresh >= 32 or estimate[j, 2] == 0):
        offset, half = _intersect(low_ns[j], high_ns[j], at_ns[j], seen[j], now_ns)
        estimate[j, 0] = offset
        estimate[j, 1] = half
        estimate[j, 2] = seen[j]
    return estimate[j, 0], estimate[j, 1]


@inner
def _intersect(low_ns: I64, high_ns: I64, at_ns: I64, seen: Int, now_ns: Int) -> tuple[Int, Int]:
    kept = min(seen, SAMPLES)
    newest = at_ns[:kept].max()
    lows = np.empty(kept, np.int64)
    highs = np.empty(kept, np.int64)
    n = 0
    for i in range(kept):
        if at_ns[i] >= newest - WINDOW_NS:
            lows[n] = low_ns[i]
            highs[n] = high_ns[i]
            n += 1
    lows = np.sort(lows[:n])
    highs = np.sort(highs[:n])
    cut = int(n * TRIM_RATIO) if n >= TRIM_FROM else 0
    low = lows[n - 1 - cut]
    high = highs[cut]
    half = abs(high - low) // 2
    if low <= 0 <= high:
        return 0, half
    return (low + high) // 2, half


@inlined
def clock_of(narrow: I32, k: Int) -> Int:
    """Which clock stamped the span: its host's, else one of its service's own."""
    host = narrow[k, HOST]
    return host if host != 0 else -np.int64(narrow[k, SERVICE])


@inlined
def find_clock(clocks: I64, known: Int, clock: Int) -> Int:
    """The place of `clock` among the first `known` rows of `clocks`; -1: it isn't there."""
    for c in range(known):
        if clocks[c, 0] == clock:
            return c
    return -1


@inlined
def known_elsewhere(
    pool: tuple[I64, I64, I64, I64, I64, I64], clocks: I64, known: Int, mine: Int, now_ns: Int
) -> Int:
    """A clock that no call of this request leads to, by the calls of others; -1: never seen.

    `clocks` are (clock, offset, half width); it is added at place `known`.
    """
    for c in range(known):
        if clocks[c, 2] < 0:
            continue
        offset, half = offset_of(*pool, clocks[c, 0], mine, now_ns)
        if half < 0:
            offset, half = offset_of(*pool, mine, clocks[c, 0], now_ns)
            offset = -offset
        if half >= 0:
            clocks[known, 0] = mine
            clocks[known, 1] = clocks[c, 1] + offset
            clocks[known, 2] = clocks[c, 2] + half
            return known
    return -1


@inner
def read_by_one_clock(
    wide: I64, narrow: I32, count: Int, pool: tuple[I64, I64, I64, I64, I64, I64], read_ns: I64
) -> Int:
    """Fill `read_ns` with each span's start, by the clock of the first span.

    A clock that no call leads to from there is read as it is. Returns the largest error, in ns,
    of those that were corrected.
    """
    clocks = np.zeros((MOST_CLOCKS, 3), np.int64)
    clocks[0, 0] = clock_of(narrow, 0)
    known = 1
    for _ in range(3):
        before = known
        for k in range(count):
            mine = clock_of(narrow, k)
            if mine != 0 and known < MOST_CLOCKS and find_clock(clocks, known, mine) < 0:
                if known_elsewhere(pool, clocks, known, mine, wide[k, RECEIVED]) >= 0:
                    known += 1
        if known == before:
            break
    error = 0
    for c in range(known):
        if clocks[c, 1] != 0:
            error = max(error, clocks[c, 2])
    for k in range(count):
        c = find_clock(clocks, known, clock_of(narrow, k))
        read_ns[k] = wide[k, START] - (clocks[c, 1] if c >= 0 else 0)
    return error
