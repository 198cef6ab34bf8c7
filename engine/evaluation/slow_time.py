"""Which hop took what slow requests took over their baseline, of the last minutes."""

import json
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.evaluation.windows import MINUTE_NS, MINUTE_S
from tailburn.engine.excess import PLACES
from tailburn.engine.grouping import I64, distinct, text
from tailburn.engine.names import ALL_HOPS, UNKNOWN

WHOLE: Final = len(PLACES)
"""The column of the excess of all hops together."""
_PLACE: Final = {hop: i for i, hop in enumerate((*PLACES, ALL_HOPS))}


class _Held:
    """Of one SLO: the rows of EXCESS, and the series that they name."""

    def __init__(self, by: tuple[str, ...], minutes: int) -> None:
        self.minutes = minutes
        self.series: list[tuple[str, ...]] = []
        self._by = by
        self._columns: dict[tuple[str, ...], int] = {}
        self._told: dict[str, int] = {}
        self._rows: list[I64] = []  # (n, 4): minute, series, place, ns

    def add(self, rows: I64) -> None:
        self._rows.append(rows)

    @property
    def rows(self) -> I64:
        """All of them, as one array from now on."""
        self._rows = [np.concatenate([np.zeros((0, 4), np.int64), *self._rows])]
        return self._rows[0]

    def trim(self, before: int) -> None:
        rows = self.rows
        self._rows = [rows[rows[:, 0] >= before]]

    def column(self, by: str) -> int:
        """Of the values that a row tells as text."""
        if by not in self._told:
            told = json.loads(by) if by else {}
            values = tuple(str(told.get(name, UNKNOWN)) for name in self._by)
            if values not in self._columns:
                self._columns[values] = len(self.series)
                self.series.append(values)
            self._told[by] = self._columns[values]
        return self._told[by]


class SlowTime:
    """Rows of EXCESS of the SLOs in `kept_s`. Times are minutes since the epoch."""

    def __init__(self, kept_s: Mapping[str, tuple[tuple[str, ...], int]]) -> None:
        """`kept_s`: of each SLO its `by`, and how many seconds back somebody asks."""
        self._held = {slo: _Held(by, kept // MINUTE_S) for slo, (by, kept) in kept_s.items()}

    def take(self, rows: pa.Table) -> None:
        """Rows of EXCESS."""
        if not self._held or not len(rows):
            return
        keys, key = distinct([text(rows.column(c), UNKNOWN) for c in ("slo", "by")])
        named = list(zip(*(k.to_pylist() for k in keys), strict=True))
        hops, hop = distinct([text(rows.column("hop"), UNKNOWN)])
        place = np.array([_PLACE.get(name, -1) for name in hops[0].to_pylist()])[hop]
        minute = rows.column("minute_ns").to_numpy() // MINUTE_NS
        ns = rows.column("slow_ns").to_numpy()
        for slo, held in self._held.items():
            each = [held.column(by) if name == slo else -1 for name, by in named]
            series = np.array(each)[key]
            ours = (series >= 0) & (place >= 0)
            held.add(np.stack([minute, series, place, ns], axis=1)[ours])

    def trim(self, now: int) -> None:
        """Forget what nobody looks back to from a minute on."""
        for held in self._held.values():
            held.trim(now - held.minutes)

    def window(self, slo: str, first: int, last: int) -> tuple[list[tuple[str, ...]], I64]:
        """Series, and ns of each in these minutes, both included: (series, places and WHOLE)."""
        held = self._held[slo]
        rows = held.rows
        inside = rows[(rows[:, 0] >= first) & (rows[:, 0] <= last)]
        sums = np.zeros((len(held.series), WHOLE + 1), np.int64)
        np.add.at(sums, (inside[:, 1], inside[:, 2]), inside[:, 3])
        return held.series, sums
