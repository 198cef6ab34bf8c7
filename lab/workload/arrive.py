"""Arrivals of every client within one block of time: a slow rate, and a renewal under it.

In operational time (rate integrated) intervals are Gamma or Weibull of mean 1; the block's
segments map that back to nanoseconds. Each block starts in the stationary state, so
expected counts equal rate x time exactly, whatever the burstiness.
"""

import numpy as np

from tailburn.lab.compiled import compiled
from tailburn.lab.workload.draws import first_wait, interval, key_of

ARRIVALS = np.uint64(1)


@compiled
def arrive(
    seed: np.uint64,
    block: int,
    edges_ns: np.ndarray,
    rate_per_s: np.ndarray,
    shape: np.ndarray,
    weibull: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(first, at_ns): client c's arrivals are at_ns[first[c]:first[c + 1]], ascending.

    edges_ns: ends of the block's segments, one more than there are segments.
    rate_per_s: [client, segment]; shape, weibull: [client].
    """
    clients, segments = rate_per_s.shape
    first = np.zeros(clients + 1, np.int64)
    room = 1024
    for c in range(clients):
        for s in range(segments):
            room += int(1.1e-9 * rate_per_s[c, s] * (edges_ns[s + 1] - edges_ns[s]))
    at = np.empty(room, np.int64)
    n = 0
    for c in range(clients):
        key = key_of(key_of(key_of(seed, ARRIVALS), np.uint64(block)), np.uint64(c))
        x = 0.0
        started = False
        i = np.uint64(0)
        passed = 0.0
        s = 0
        while s < segments:
            # Segments of one rate are one: an edge that changes nothing rounds nothing.
            start, per_s = edges_ns[s], rate_per_s[c, s]
            while s < segments and rate_per_s[c, s] == per_s:
                s += 1
            if per_s <= 0.0:
                continue
            rate, end = per_s * 1e-9, edges_ns[s]
            if not started:
                x, i = first_wait(key, i, shape[c], weibull[c])
                started = True
            here = rate * (end - start)
            while x < passed + here:
                if n == len(at):
                    grown = np.empty(2 * n, np.int64)
                    grown[:n] = at
                    at = grown
                at[n] = min(start + np.int64((x - passed) / rate), end - 1)
                n += 1
                step, i = interval(key, i, shape[c], weibull[c])
                x += step
            passed += here
        first[c + 1] = n
    return first, at[:n]
