"""p99 over the length of prompts, as a line, of the requests at the rates nearest to one."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.baseline.load import BASES, DAY_NS, Basis
from tailburn.engine.baseline.quantiles import Dense, accumulate, quantiles
from tailburn.engine.grouping import F64, I64
from tailburn.engine.slo.model import QUANTILES

_P99: Final = QUANTILES["p99"]


@dataclass(frozen=True)
class Past:
    """Cells of one clock as arrays."""

    cells: pa.Table
    count: I64
    basis: I64  # number in `load.BASES`
    hit: I64
    rate: I64
    length: I64
    tokens: I64
    day: I64

    @classmethod
    def of(cls, cells: pa.Table) -> "Past":
        basis = pc.index_in(cells.column("basis").cast(pa.string()), pa.array(map(str, BASES)))
        return cls(
            cells,
            cells.column("count").to_numpy(),
            basis.to_numpy().astype(np.int64),
            cells.column("hit_bin").to_numpy(),
            cells.column("rate_bin").to_numpy(),
            cells.column("token_bin").to_numpy(),
            cells.column("tokens").to_numpy(),
            cells.column("hour_ns").to_numpy() // DAY_NS,
        )

    def summed(self, cells: I64, group: I64, groups: int) -> Dense:
        """Histograms of some cells, added up by group."""
        return accumulate(self.cells.take(pa.array(cells)), group, groups)


@dataclass(frozen=True)
class Line:
    """p99 in s over tokens: `base_s + per_token_s * tokens`, at least `floor_s`."""

    base_s: float
    per_token_s: float
    floor_s: float
    count: int  # requests it rests on
    days: int  # in which these were received
    token_bins: tuple[int, int]
    all_hits: bool  # the prefix-hit ratio was too thin to match on


def fit(past: Past, cells: I64, basis: int, hit: int, rate: int, minimum: int) -> Line:
    """The line of p99 over tokens at the rates nearest to `rate`."""
    count = past.count
    all_hits = False
    if basis == BASES.index(Basis.PROMPT):
        same = cells[past.hit[cells] == hit]
        all_hits = int(count[same].sum()) < minimum
        cells = cells if all_hits else same
    distance = np.abs(past.rate[cells] - rate)
    within = np.bincount(distance, count[cells])
    reach = int(np.searchsorted(np.cumsum(within), minimum))
    near = cells[distance <= reach]
    lengths, position = np.unique(past.length[near], return_inverse=True)
    group = _grouped(np.bincount(position, count[near]).astype(np.float64), minimum)[position]
    groups = int(group.max()) + 1
    tails = quantiles(past.summed(near, group, groups), _P99)
    weight = np.bincount(group, count[near]).astype(np.float64)
    tokens = np.bincount(group, past.tokens[near]) / weight
    base, slope = _line(tokens, tails, weight)
    if slope <= 0:
        whole = past.summed(near, np.zeros(len(near), np.int64), 1)
        base, slope = float(quantiles(whole, _P99)[0]), 0.0
    return Line(
        base,
        slope,
        float(tails.min()) if slope else base,
        int(weight.sum()),
        len(np.unique(past.day[near])),
        (int(lengths[0]), int(lengths[-1])),
        all_hits,
    )


def _grouped(counts: F64, minimum: int) -> I64:
    """Neighbours joined until each group has enough; a rest goes to the last one."""
    group = np.zeros(len(counts), np.int64)
    number, held = 0, 0.0
    for i, count in enumerate(counts):
        group[i] = number
        held += count
        if held >= minimum:
            number, held = number + 1, 0.0
    return np.minimum(group, max(number - 1, 0))


def _line(tokens: F64, tails: F64, weight: F64) -> tuple[float, float]:
    """Base and slope of the weighted least squares; slope 0 where one point is all."""
    if len(tokens) < 2:
        return float(tails[0]), 0.0
    middle, level = np.average(tokens, weights=weight), np.average(tails, weights=weight)
    spread = float((weight * (tokens - middle) ** 2).sum())
    if spread <= 0:
        return float(level), 0.0
    slope = float((weight * (tokens - middle) * (tails - level)).sum()) / spread
    return float(level - slope * middle), slope
