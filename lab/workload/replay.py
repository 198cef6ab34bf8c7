"""Recorded requests played again: the same instants and lengths, over and over."""

import numpy as np

from tailburn.lab.workload.arrive import arrive
from tailburn.lab.workload.draws import key_of, units
from tailburn.lab.workload.profiles import Recorded

REPLAY = np.uint64(5)


def replay(
    recorded: Recorded,
    seed: np.uint64,
    block: int,
    block_ns: int,
    scale: float,
    shares: np.ndarray,
    edges_ns: np.ndarray,
    factor: np.ndarray,
    added: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first, at_ns, given) of one block: recorded requests that fall into it, by client.

    With a scale under 1 each is kept with those odds; above, whole copies are laid over
    it, each shifted by a part of the recording. Which client asks is drawn by share.
    """
    most = scale * max(float(factor.max()), 1.0)
    # What a change adds was never recorded: its lengths are drawn (-1).
    one = np.ones(len(shares))
    begun, extra_at = arrive(seed, block, edges_ns, np.ascontiguousarray(added), one, one < 0)
    extra = np.repeat(np.arange(len(shares)), np.diff(begun))
    parts = [(extra_at, np.full(len(extra), -1), extra)]
    for copy in range(int(np.ceil(most))):
        at, row = _falling(recorded, block * block_ns, block_ns, copy)
        key = key_of(
            np.uint64(key_of(np.uint64(key_of(seed, REPLAY)), np.uint64(block))), np.uint64(copy)
        )
        u = units(np.uint64(key), 0, 2 * len(at)).reshape(-1, 2)
        client = np.searchsorted(np.cumsum(shares) / shares.sum(), u[:, 0])
        segment = np.searchsorted(edges_ns, at, side="right") - 1
        kept = copy + u[:, 1] < scale * factor[client, segment]
        parts.append((at[kept], row[kept], client[kept]))
    at, row, client = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((at, client))
    at, row, client = at[order], row[order], client[order]
    first = np.searchsorted(client, np.arange(len(shares) + 1))
    given = np.stack([recorded.prompt[row], recorded.output[row]], axis=1)
    given[row < 0] = -1
    return first, at, given


def _falling(
    recorded: Recorded, start_ns: int, length_ns: int, copy: int
) -> tuple[np.ndarray, np.ndarray]:
    """(at_ns, row) of the recorded requests that fall into a stretch of time."""
    span = recorded.span_ns
    shift = int(copy * 0.6180339887 * span) % span
    begin = start_ns + shift
    at, rows = [], []
    lap = begin // span
    while lap * span < begin + length_ns:
        low, high = np.searchsorted(
            recorded.at_ns, [begin - lap * span, begin + length_ns - lap * span]
        )
        at.append(recorded.at_ns[low:high] + lap * span - shift)
        rows.append(np.arange(low, high))
        lap += 1
    return np.concatenate(at), np.concatenate(rows)
