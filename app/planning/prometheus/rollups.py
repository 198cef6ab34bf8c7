"""Percentiles of an SLO's clocks by the minute, out of the buckets that a Prometheus keeps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.app.errors import UserError
from tailburn.app.planning.prometheus.asking import MINUTE_S, Asking
from tailburn.app.planning.prometheus.counters import Labels, labels_of, recent
from tailburn.collector.scrape.ranges import Ranged
from tailburn.engine.backtest.rises import Counter
from tailburn.engine.evaluation.quantiles import BOUND_STEP, BOUNDS_S, EXPOSED
from tailburn.engine.evaluation.windows import SAMPLED_S
from tailburn.engine.grouping import I64
from tailburn.engine.names import UNKNOWN
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import ROLLUP_DIMENSIONS, ROLLUPS
from tailburn.engine.slo.model import Clock, Slo
from tailburn.engine.slo.verdicts import clock_column
from tailburn.rules.sources.histograms import Histogram

_BOUND: Final = "le"
_LONGEST: Final = SAMPLED_S // MINUTE_S
"""Minutes: no rate of buckets looks back further, so none is of a longer gap."""


@dataclass
class Buckets:
    """Read as they are asked for, in order of time: what is held is the last value of each."""

    slo: Slo
    clocks: tuple[Clock, ...]
    asking: Asking
    _counters: dict[tuple[Clock, Labels], Counter] = field(default_factory=dict)
    _read_ns: int | None = None

    def __call__(self, begin_ns: int, end_ns: int, clocks: Sequence[str]) -> pa.Table:
        """ROLLUPS of the minutes from one time to another. Raises UserError."""
        if not clocks:
            return ROLLUPS.empty_table()
        first_ns = begin_ns if self._read_ns is None else self._read_ns + MINUTE_NS
        self._read_ns = end_ns
        queries = [recent(Histogram(self.slo, clock).own()) for clock in self.clocks]
        parts = [ROLLUPS.empty_table()]
        for answers in self.asking.pieces(queries, first_ns // 10**9, end_ns // 10**9):
            for clock, answer in zip(self.clocks, answers, strict=True):
                parts += self._rollups(clock, answer)
        return pa.concat_tables(parts)

    def _rollups(self, clock: Clock, answer: Sequence[Ranged]) -> Iterator[pa.Table]:
        """Of each histogram among the series."""
        histograms: dict[Labels, list[Ranged]] = {}
        for series in answer:
            own = tuple(pair for pair in labels_of(series) if pair[0] != _BOUND)
            histograms.setdefault(own, []).append(series)
        for labels, buckets in histograms.items():
            minutes, counts = self._counts(clock, buckets)
            if len(minutes):
                yield _rows(dict(labels), clock_column(clock, self.slo.vantage), minutes, counts)

    def _counts(self, clock: Clock, buckets: Sequence[Ranged]) -> tuple[I64, I64]:
        """Minutes, and what came in each exposed bucket: (minutes, EXPOSED)."""
        at = np.concatenate([one.at_s for one in buckets]) // MINUTE_S
        first, last = int(at.min()) - _LONGEST, int(at.max())
        cumulative = np.zeros((last - first, EXPOSED), np.int64)
        for series in buckets:
            counter = self._counters.setdefault((clock, labels_of(series)), Counter())
            rises = counter.take(series.at_s // MINUTE_S, series.values)
            held = (rises.end - rises.begin <= _LONGEST) & (rises.amount > 0)
            # Of a short gap the last minute has it all: every rate that holds it holds the gap.
            cumulative[rises.end[held] - 1 - first, _bucket(series.labels)] = rises.amount[held]
        # A bound that is not kept has what is below it.
        counts = np.diff(np.maximum.accumulate(cumulative, axis=1), axis=1, prepend=0)
        came = np.flatnonzero(counts.any(axis=1))
        return came + first, counts[came]


def _bucket(labels: Mapping[str, str]) -> int:
    """Which exposed bucket ends at a bound; Prometheus writes bounds in its own ways."""
    text = labels.get(_BOUND, "")
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if bound == math.inf:
        return EXPOSED - 1
    near = np.flatnonzero(np.isclose(BOUNDS_S, bound, rtol=1e-6, atol=0))
    if not len(near):
        name = labels.get("__name__", "a histogram")
        raise UserError(f"--prometheus: {name} has a bucket le={text!r} that no tailburn exposes")
    return int(near[0])


def _rows(labels: Mapping[str, str], clock: str, minutes: I64, counts: I64) -> pa.Table:
    row, bucket = np.nonzero(counts)
    offsets = pa.array(np.searchsorted(row, np.arange(len(minutes) + 1)).astype(np.int32))
    many = len(minutes)
    told = {
        "minute_ns": pa.array(minutes * MINUTE_NS),
        **{d: pa.array([labels.get(d) or UNKNOWN] * many) for d in ROLLUP_DIMENSIONS},
        "clock": pa.array([clock] * many),
        "count": pa.array(counts.sum(axis=1)),
        "buckets": pa.ListArray.from_arrays(
            offsets, pa.array((bucket * BOUND_STEP).astype(np.int16))
        ),
        "counts": pa.ListArray.from_arrays(offsets, pa.array(counts[row, bucket])),
    }
    columns = [told[f.name].cast(f.type) if f.name in told else pa.nulls(many, f.type)
               for f in ROLLUPS]  # fmt: skip
    return pa.table(columns, schema=ROLLUPS)
