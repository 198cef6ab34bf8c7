"""Stretches in which nobody asked anything, though many should have: nothing was kept of them."""

from typing import Final

import numpy as np

from tailburn.engine.grouping import I64
from tailburn.engine.rollup import MINUTE_NS

LEAST_MINUTES: Final = 15
LEAST_EXPECTED: Final = 30.0
"""Requests that came at the mean rate of the whole time; that none did by chance is 1e-13."""
Span = tuple[int, int]


class Presence:
    """How many requests of anyone came in each minute."""

    def __init__(self, since_ns: int, until_ns: int) -> None:
        self._since_ns = since_ns
        self._counts = np.zeros((until_ns - since_ns) // MINUTE_NS, np.int64)

    def take(self, received_ns: I64) -> None:
        """Receive times within the stretch."""
        at = (received_ns - self._since_ns) // MINUTE_NS
        np.add.at(self._counts, at, 1)

    @property
    def end_ns(self) -> int:
        """The end of the last minute in which a request came; the begin, where none did."""
        came = np.flatnonzero(self._counts)
        return self._since_ns + (int(came[-1]) + 1 if len(came) else 0) * MINUTE_NS

    def holes(self, until_ns: int) -> tuple[Span, ...]:
        """Long stretches before a time without a request, in order."""
        silent = self._counts[: (until_ns - self._since_ns) // MINUTE_NS] == 0
        least = max(LEAST_MINUTES, LEAST_EXPECTED / max(float(self._counts.mean()), 1e-9))
        edges = np.flatnonzero(np.diff(np.concatenate([[0], silent.astype(np.int8), [0]])))
        return tuple(
            (self._since_ns + int(b) * MINUTE_NS, self._since_ns + int(e) * MINUTE_NS)
            for b, e in zip(edges[::2], edges[1::2], strict=True)
            if e - b >= least
        )
