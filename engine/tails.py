"""Tail quantiles per group and clock, each with its error and how much it rests on.

From rollups where groups and filters are dimensions of theirs: within the histogram's bound,
in whole minutes, so that a window is widened to them. From the requests themselves otherwise,
or when asked for exact ones. Either way a duration nobody measured is counted apart and is
never a zero, and TPOT rests on requests of enough output tokens only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine import histogram, rollup
from tailburn.engine.grouping import F64, I64, distinct, numbers, text
from tailburn.engine.names import CLOCK_COLUMNS, QUANTILES, UNKNOWN
from tailburn.engine.schema import ROLLUP_DIMENSIONS
from tailburn.engine.store.api import ALWAYS, Store, UnknownColumn, Window


class Source(StrEnum):
    """What a tail was computed from."""

    ROLLUPS = "rollups"
    ROWS = "rows"


@dataclass(frozen=True)
class Quantile:
    """One quantile. `thin`: fewer than one request is expected beyond it, so it is luck."""

    q: float
    value_s: float
    thin: bool


@dataclass(frozen=True)
class Tail:
    """The tail of one clock in one group; without a measured request all values are None."""

    group: Mapping[str, str]
    clock: str
    count: int  # measured requests, weighted
    unmeasured: int  # requests of the group without this clock, weighted
    quantiles: tuple[Quantile, ...]  # p50, p95, p99, p99.9; empty without a measured request
    min_s: float | None
    max_s: float | None
    error_ratio: float  # at most this far from exact, relative
    source: Source

    def value_s(self, q: float) -> float | None:
        """The quantile `q`, one of `QUANTILES`; None without a measured request."""
        return next((x.value_s for x in self.quantiles if x.q == q), None)


def tails(
    store: Store,
    window: Window = ALWAYS,
    where: Mapping[str, str] | None = None,
    by: Sequence[str] = (),
    clocks: Sequence[str] = CLOCK_COLUMNS,
    exact: bool = False,
) -> list[Tail]:
    """One `Tail` per group of `by` and clock, groups in order, clocks as given.

    Raises `UnknownColumn`.
    """
    unknown = set(clocks) - set(rollup.FOLDED_COLUMNS)
    if unknown:
        raise UnknownColumn(f"no clock {min(unknown)!r}")
    folded = set(ROLLUP_DIMENSIONS)
    if exact or not folded.issuperset(by) or not folded.issuperset(where or {}):
        return _from_rows(store, window, where, by, clocks)
    return _from_rollups(store, window, where, by, clocks)


def weighted_quantile(values: F64, weights: F64, q: float) -> float:
    """The smallest value that at least a share `q` of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, q * reached[-1] * (1 - _ROUNDING))
    return float(values[order[min(int(at), len(values) - 1)]])


_ROUNDING: Final = 1e-12


def _from_rollups(
    store: Store,
    window: Window,
    where: Mapping[str, str] | None,
    by: Sequence[str],
    clocks: Sequence[str],
) -> list[Tail]:
    wanted = [rollup.REQUESTS, *clocks]
    rows = store.rollups(_whole_minutes(window), where, by, wanted)
    keys = zip(*(_texts(rows, name) for name in (*by, "clock")), strict=True)
    at = {(key[:-1], key[-1]): i for i, key in enumerate(keys)}
    counts = rows.column("count").to_pylist()
    found = []
    for group in sorted({group for group, _ in at}):
        total = counts[at[group, rollup.REQUESTS]] if (group, rollup.REQUESTS) in at else 0
        for clock in clocks:
            row = at.get((group, clock))
            names = dict(zip(by, group, strict=True))
            if row is None:
                found.append(_unmeasured(names, clock, total, Source.ROLLUPS))
            else:
                found.append(_from_histogram(names, clock, total, rows, row))
    return found


def _from_histogram(
    names: Mapping[str, str], clock: str, total: int, rows: pa.Table, row: int
) -> Tail:
    counts = rollup.dense(rows, row)
    count = rows.column("count")[row].as_py()
    low, high = rows.column("min_s")[row].as_py(), rows.column("max_s")[row].as_py()
    values = [histogram.quantile(counts, q, low, high) for q in QUANTILES]
    return Tail(
        group=names,
        clock=clock,
        count=count,
        unmeasured=max(total - count, 0),
        quantiles=tuple(
            Quantile(q, value, is_thin(q, count))
            for q, value in zip(QUANTILES, values, strict=True)
            if value is not None
        ),
        min_s=low,
        max_s=high,
        error_ratio=histogram.RELATIVE_ERROR,
        source=Source.ROLLUPS,
    )


def _from_rows(
    store: Store,
    window: Window,
    where: Mapping[str, str] | None,
    by: Sequence[str],
    clocks: Sequence[str],
) -> list[Tail]:
    columns = list(dict.fromkeys([*by, *clocks, "weight", "output_tokens"]))
    rows = store.requests(window, where, columns=columns)
    weight = numbers(rows.column("weight"), 1.0)
    long_enough = numbers(rows.column("output_tokens"), 0) >= rollup.TPOT_MIN_OUTPUT_TOKENS
    values = {clock: numbers(rows.column(clock), np.nan) for clock in clocks}
    found = []
    for names, here in _members(rows, by):
        for clock in clocks:
            of_group = values[clock][here]
            measured = (of_group >= 0) & (of_group < np.inf)
            if clock.startswith("tpot_"):
                measured &= long_enough[here]
            found.append(_from_values(names, clock, of_group, weight[here], measured))
    return found


def _members(rows: pa.Table, by: Sequence[str]) -> list[tuple[dict[str, str], I64]]:
    """Each group's names and the positions of its rows, groups in order."""
    if len(rows) == 0:
        return []
    if not by:
        return [({}, np.arange(len(rows)))]
    keys, group = distinct([text(rows.column(name), UNKNOWN) for name in by])
    positions = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    names = zip(*(key.to_pylist() for key in keys), strict=True)
    named = sorted(zip(names, positions, strict=True), key=lambda pair: pair[0])
    return [(dict(zip(by, values, strict=True)), where) for values, where in named]


def _from_values(
    names: Mapping[str, str],
    clock: str,
    values: F64,
    weight: F64,
    measured: NDArray[np.bool_],
) -> Tail:
    missing = round(float(weight[~measured].sum()))
    if not measured.any():
        return _unmeasured(names, clock, missing, Source.ROWS)
    known, share = values[measured], weight[measured]
    effective = float(share.sum()) ** 2 / float((share**2).sum())
    return Tail(
        group=names,
        clock=clock,
        count=round(float(share.sum())),
        unmeasured=missing,
        quantiles=tuple(
            Quantile(q, weighted_quantile(known, share, q), is_thin(q, effective))
            for q in QUANTILES
        ),
        min_s=float(known.min()),
        max_s=float(known.max()),
        error_ratio=0.0,
        source=Source.ROWS,
    )


def _unmeasured(names: Mapping[str, str], clock: str, total: int, source: Source) -> Tail:
    return Tail(names, clock, 0, total, (), None, None, 0.0, source)


def is_thin(q: float, effective_count: float) -> bool:
    """Whether fewer than one request is expected beyond the quantile `q` of so many."""
    return round(effective_count * (1 - q), 6) < 1


def _whole_minutes(window: Window) -> Window:
    since, until = window.since_ns, window.until_ns
    return Window(
        since - since % rollup.MINUTE_NS if since is not None else None,
        -(-until // rollup.MINUTE_NS) * rollup.MINUTE_NS if until is not None else None,
    )


def _texts(rows: pa.Table, column: str) -> list[str]:
    return text(rows.column(column), UNKNOWN).to_pylist()
