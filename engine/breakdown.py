"""Who owned each instant: self time per hop, summing exactly to the window.

The deepest active hop owns an instant, so a hop's self time is its interval minus the
union of deeper intervals. What no interval covers is unattributed, the last entry.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.compiled import compiled, inlined
from tailburn.engine.names import HOPS

DEPTHS = len(HOPS)
UNATTRIBUTED_INDEX = DEPTHS


@compiled
def sweep(
    begin_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    hop: NDArray[np.int64],
    count: int,
    window_begin_ns: int,
    window_end_ns: int,
    edges_ns: NDArray[np.int64],
    self_ns: NDArray[np.int64],
) -> None:
    """Split `[window_begin_ns, window_end_ns)` over hops into `self_ns` (DEPTHS + 1 entries).

    The first `count` entries of `begin_ns`, `end_ns`, `hop` are the intervals, in any order,
    overlapping at will; empty and outside ones are allowed. `edges_ns` is scratch for at
    least `2 * count + 2` entries. Afterwards `self_ns.sum()` is the window's length, exactly.
    """
    self_ns[:] = 0
    if window_end_ns <= window_begin_ns:
        return
    n = 0
    edges_ns[n] = window_begin_ns
    n += 1
    for i in range(count):
        for t in (begin_ns[i], end_ns[i]):
            if window_begin_ns < t < window_end_ns:
                edges_ns[n] = t
                n += 1
    edges_ns[n] = window_end_ns
    n += 1
    if n <= 48:
        for i in range(1, n):
            t = edges_ns[i]
            j = i - 1
            while j >= 0 and edges_ns[j] > t:
                edges_ns[j + 1] = edges_ns[j]
                j -= 1
            edges_ns[j + 1] = t
    else:
        edges_ns[:n] = np.sort(edges_ns[:n])
    if count <= 64:
        _own_by_scan(begin_ns, end_ns, hop, count, edges_ns, n, self_ns)
    else:
        _own_by_painting(begin_ns, end_ns, hop, count, edges_ns, n, self_ns)


@inlined
def _own_by_scan(
    begin_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    hop: NDArray[np.int64],
    count: int,
    edges_ns: NDArray[np.int64],
    edge_count: int,
    self_ns: NDArray[np.int64],
) -> None:
    for e in range(edge_count - 1):
        a = edges_ns[e]
        b = edges_ns[e + 1]
        if b == a:
            continue
        owner = -1
        for i in range(count):
            if begin_ns[i] <= a and end_ns[i] >= b and hop[i] > owner:
                owner = hop[i]
        self_ns[owner if owner >= 0 else UNATTRIBUTED_INDEX] += b - a


@compiled
def _own_by_painting(
    begin_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    hop: NDArray[np.int64],
    count: int,
    edges_ns: NDArray[np.int64],
    edge_count: int,
    self_ns: NDArray[np.int64],
) -> None:
    """For many intervals: count starts and stops per edge and depth, then walk once."""
    change = np.zeros((edge_count, DEPTHS), np.int32)
    edges = edges_ns[:edge_count]
    for i in range(count):
        a = max(begin_ns[i], edges[0])
        b = min(end_ns[i], edges[edge_count - 1])
        if b <= a or hop[i] < 0:
            continue
        change[np.searchsorted(edges, a), hop[i]] += 1
        change[np.searchsorted(edges, b), hop[i]] -= 1
    active = np.zeros(DEPTHS, np.int32)
    for e in range(edge_count - 1):
        owner = UNATTRIBUTED_INDEX
        for h in range(DEPTHS):
            active[h] += change[e, h]
            if active[h] > 0:
                owner = h
        self_ns[owner] += edges_ns[e + 1] - edges_ns[e]
