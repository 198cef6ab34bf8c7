"""Requests in flight, a gauge: minute by minute, nan where nobody told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tailburn.engine.grouping import F64, I64

_SPARE: Final = 10


@dataclass
class _Held:
    """Of one SLO: a row for each of the last minutes, a column for each value of `by`."""

    at: I64  # the minute of each row
    counts: F64
    columns: dict[tuple[str, ...], int] = field(default_factory=dict)


class InFlight:
    """Of each SLO, so many minutes back; times are minutes since the epoch."""

    def __init__(self, windows: Mapping[str, int]) -> None:
        self._held = {
            slo: _Held(np.full(window + _SPARE, -1), np.zeros((window + _SPARE, 0)))
            for slo, window in windows.items()
        }

    def take(self, slo: str, minute: int, in_flight: Mapping[tuple[str, ...], float]) -> None:
        """What was in flight at a minute; a later value for it takes the place of an earlier."""
        held = self._held.get(slo)
        row = minute % len(held.at) if held else 0
        if held is None or minute < held.at[row]:
            return
        if minute > held.at[row]:
            held.at[row] = minute
            held.counts[row] = np.nan
        for values in in_flight:
            held.columns.setdefault(values, len(held.columns))
        lacking = len(held.columns) - held.counts.shape[1]
        if lacking > 0:
            wider = np.full((len(held.at), lacking + len(held.columns)), np.nan)
            held.counts = np.concatenate([held.counts, wider], axis=1)
        for values, count in in_flight.items():
            held.counts[row, held.columns[values]] = count

    def window(self, slo: str, first: int, last: int) -> tuple[list[tuple[str, ...]], F64]:
        """Values of `by`, and what was in flight at these minutes, both included: (minutes, by)."""
        held = self._held.get(slo)
        if held is None:
            return [], np.zeros((last - first + 1, 0))
        minutes = np.arange(first, last + 1)
        rows = minutes % len(held.at)
        found = held.counts[rows, : len(held.columns)]
        found[held.at[rows] != minutes] = np.nan
        return list(held.columns), found
