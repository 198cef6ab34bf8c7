"""The slow band of a window against its baseline's: other requests, or slower hops?

The band is every request at or above a percentile of its own window. The difference of the two
bands' means is split in two, after Kitagawa (1955, "Components of a Difference Between Two
Rates"): over cells c of alike requests, with p and b their shares of the bands, M and N the
cells' mean times,

    mean - baseline mean = sum of (p - b) (M + N) / 2      mix: other requests than before
                         + sum of (p + b) / 2 (M - N)      hops: the same requests take longer

and M - N is the sum of its hops' differences. A cell that only one band has is mix alone. All is
computed in fractions of whole nanoseconds, so the effects add up to the change exactly; only
`mean_ns` and `effect_ns` are rounded, so that they still do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.excess import NEEDED_COLUMNS, PLACES, Clock, Mask, Measured, measure
from tailburn.engine.grouping import I64, distinct, numbers, stacked_text

CELL_COLUMNS: Final = ("model", "output_tokens", "streamed")
BAND_COLUMNS: Final = (*NEEDED_COLUMNS, *CELL_COLUMNS)


@dataclass(frozen=True)
class HopEffect:
    """By how much one hop moves the mean of the band, requests alike."""

    hop: str
    effect_ns: int


@dataclass(frozen=True)
class Band:
    """The requests of one window at or above its percentile."""

    count: int  # weighted
    from_ns: int  # the percentile: the fastest request in it
    mean_ns: int


@dataclass(frozen=True)
class BandChange:
    """`band.mean_ns - baseline.mean_ns == mix_ns + sum of hops' effect_ns == change_ns`."""

    clock: Clock
    q: float
    band: Band
    baseline: Band
    change_ns: int
    mix_ns: int
    hops: tuple[HopEffect, ...]  # largest first; those without any effect are left out

    @property
    def is_mix(self) -> bool:
        """Whether other requests than before are over half of what got slower."""
        return self.change_ns > 0 and 2 * self.mix_ns > self.change_ns


def band_change(
    requests: pa.Table, baseline: pa.Table, clock: Clock, q: float
) -> BandChange | None:
    """Split the change of the band at or above quantile `q`; None where a side measures nothing.

    Both tables need `BAND_COLUMNS`; cells are model, powers of two of the uncached prompt tokens
    and of the output tokens, and whether it streams. Raises ValueError unless 0 < q < 1.
    """
    if not 0 < q < 1:
        raise ValueError(f"q must be within 0 and 1, got {q!r}")
    now, before = measure(requests, clock), measure(baseline, clock)
    if not len(now.row) or not len(before.row):
        return None
    cells = _cells(requests, now, baseline, before)
    a, b = _Side(now, cells[: len(now.row)], q), _Side(before, cells[len(now.row) :], q)
    mix, hops = _kitagawa(a, b)
    change_ns = round(a.mean) - round(b.mean)
    mix_ns, *hop_ns = _rounded([mix, *hops], change_ns)
    effects = [HopEffect(PLACES[i], n) for i, n in enumerate(hop_ns) if n]
    effects.sort(key=lambda effect: -effect.effect_ns)
    return BandChange(clock, q, a.band, b.band, change_ns, mix_ns, tuple(effects))


class _Side:
    """One window's band: its sums by cell."""

    def __init__(self, rows: Measured, cells: I64, q: float) -> None:
        mask = _at_or_above(rows, q)
        weight, hop_ns = rows.weight[mask], rows.hop_ns[mask]
        self.cells, code = np.unique(cells[mask], return_inverse=True)
        self.count = int(weight.sum())
        self.counts = np.zeros(len(self.cells), np.int64)
        np.add.at(self.counts, code, weight)
        self.sums = np.zeros((len(self.cells), hop_ns.shape[1]), np.int64)
        np.add.at(self.sums, code, hop_ns * weight[:, None])
        self.mean = Fraction(int(self.sums.sum()), self.count)
        self.band = Band(self.count, int(rows.total_ns[mask].min()), round(self.mean))

    def of(self, cell: int) -> tuple[Fraction, list[Fraction]] | None:
        """The share of a cell and its mean ns by hop; None where the band has none of it."""
        at = int(np.searchsorted(self.cells, cell))
        if at == len(self.cells) or self.cells[at] != cell:
            return None
        n = int(self.counts[at])
        return Fraction(n, self.count), [Fraction(int(ns), n) for ns in self.sums[at]]


def _at_or_above(rows: Measured, q: float) -> Mask:
    """The requests whose rank is at least q of all, and those as slow as the first of them."""
    order = np.argsort(rows.total_ns, kind="stable")
    reached = np.cumsum(rows.weight[order])
    first = int(np.searchsorted(reached, q * int(reached[-1])))
    mask: Mask = rows.total_ns >= rows.total_ns[order[first]]
    return mask


def _kitagawa(a: _Side, b: _Side) -> tuple[Fraction, list[Fraction]]:
    mix, hops = Fraction(0), [Fraction(0)] * len(PLACES)
    for cell in np.union1d(a.cells, b.cells).tolist():
        here, there = a.of(cell), b.of(cell)
        if here is None or there is None:
            mix += here[0] * sum(here[1]) if here is not None else Fraction(0)
            mix -= there[0] * sum(there[1]) if there is not None else Fraction(0)
            continue
        mix += (here[0] - there[0]) * (sum(here[1]) + sum(there[1])) / 2
        both = (here[0] + there[0]) / 2
        hops = [h + both * (x - y) for h, x, y in zip(hops, here[1], there[1], strict=True)]
    return mix, hops


def _rounded(parts: Sequence[Fraction], total: int) -> list[int]:
    """Whole numbers nearest to the parts that add up to `total`: largest remainder first."""
    floors = [part.numerator // part.denominator for part in parts]
    missing = total - sum(floors)
    by_rest = sorted(range(len(parts)), key=lambda i: floors[i] - parts[i])
    # Both means are rounded once: what that moves lies on the largest remainders too.
    step = 1 if missing >= 0 else -1
    for k in range(abs(missing)):
        floors[by_rest[k % len(parts)]] += step
    return floors


def _cells(requests: pa.Table, now: Measured, baseline: pa.Table, before: Measured) -> I64:
    """Which cell each measured row is in, those of the window before those of the baseline."""
    rows = [t.select(CELL_COLUMNS).take(m.row) for t, m in ((requests, now), (baseline, before))]
    both = pa.concat_tables(rows)
    output = numbers(both.column("output_tokens"), np.nan)
    power = np.where(np.isnan(output), -1, np.floor(np.log2(np.maximum(output, 1))))
    codes = (
        np.concatenate([now.prompt, before.prompt]),
        power.astype(np.int64),
        numbers(both.column("streamed"), -1.0).astype(np.int64),
    )
    model = stacked_text(rows, "model", "")
    return distinct([model, *(pa.chunked_array([code]) for code in codes)])[1]
