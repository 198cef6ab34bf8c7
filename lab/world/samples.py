"""What scrapes found: counters and gauges of everything, at each scrape's instant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

_NAMES = ("at_ns", "engine", "engine_real", "replicas", "stations", "gateways", "pools")


@dataclass(frozen=True)
class Samples:
    """Rows are scrapes, in order; the second index is the thing, the third a column.

    Counters start anew when a replica's process does (`replicas[.., R_STARTED]` moves).
    """

    at_ns: I64
    engine: I64
    """[scrape, replica, column of `engine_layout` (REP)]."""
    engine_real: F64
    """[scrape, replica, column of `engine_layout` (REAL)]: knobs, parts of steps."""
    replicas: I64
    """[scrape, replica, column R_* of `layout`]."""
    stations: I64
    """[scrape, station, column S_* of `layout`]: `station_names` says which is which."""
    gateways: I64
    """[scrape, gateway, column G_* of `layout`]."""
    pools: I64
    """[scrape, pool, column P_* of `layout`]."""

    def __len__(self) -> int:
        return len(self.at_ns)

    @classmethod
    def of(cls, arrays: "Sequence[NDArray[Any]]") -> "Samples":
        """From its arrays, in the order of the columns."""
        return cls(**dict(zip(_NAMES, arrays, strict=True)))

    def rows(self, which: slice) -> "Samples":
        """Some of the scrapes; shares memory."""
        return Samples.of([getattr(self, name)[which] for name in _NAMES])

    @classmethod
    def join(cls, parts: "list[Samples]") -> "Samples":
        """One after the other; at least one."""
        return cls.of([np.concatenate([getattr(p, name) for p in parts]) for name in _NAMES])
