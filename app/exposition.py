"""The request series of `/metrics`: histograms per clock and vantage, seconds per hop.

A scrape renders only what changed since the last one: the text of every other series is kept.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.app.text_format import head, labels_text
from tailburn.engine import histogram, rollup
from tailburn.engine.names import (
    CLOCK_METRICS,
    HOP_LABEL,
    HOP_METRIC,
    HOPS,
    OVERFLOW,
    PHASE_LABEL,
    REQUESTS_METRIC,
    UNATTRIBUTED,
    VANTAGE_LABEL,
    VANTAGES,
    decode_hop_column,
    ttft_hop_column,
)
from tailburn.engine.schema import ROLLUP_DIMENSIONS
from tailburn.rules.promql import quoted

BOUND_STEP: Final = 16  # every 16th bucket: bounds a factor of 1.41 apart, those of schema 1
MAX_SERIES: Final = 20_000

# The last bucket holds everything above the bound before it.
_LE: Final = (*(repr(float(b)) for b in histogram.exposition_bounds_s(BOUND_STEP)[:-1]), "+Inf")

Values = tuple[str, ...]
Counts = NDArray[np.int64]
_Shown = Callable[[Values], bool]
_TENANT: Final = ROLLUP_DIMENSIONS.index("tenant")


@dataclass
class _Histogram:
    """One series of one clock; `text` is None when it has changed since it was rendered."""

    prefixes: list[str]
    counts: Counts
    sum_s: float = 0.0
    text: str | None = None

    def rendered(self) -> str:
        if self.text is None:
            cumulative = histogram.cumulative(self.counts, BOUND_STEP).tolist()
            values = [*cumulative, self.sum_s, cumulative[-1]]
            lines = zip(self.prefixes, values, strict=True)
            self.text = "".join([f"{prefix}{value}\n" for prefix, value in lines])
        return self.text


@dataclass
class RequestSeries:
    """Counters of closed requests since the start. Safe to feed and render from two threads."""

    max_series: int = MAX_SERIES
    overflowed: int = 0  # times that a combination found no room
    _histograms: dict[str, dict[Values, _Histogram]] = field(default_factory=dict)
    _requests: dict[Values, int] = field(default_factory=dict)
    _hop_seconds: dict[tuple[str, str, Values], float] = field(default_factory=dict)
    _known: set[Values] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, requests: pa.Table) -> None:
        """Count rows of REQUESTS. Only the first of each id: a counter can't take anything back."""
        is_first = pc.equal(requests.column("version"), 1)
        first = requests.filter(pc.or_(is_first, pc.is_valid(requests.column("replaces"))))
        folded = rollup.merge(rollup.fold(first), ROLLUP_DIMENSIONS)
        columns = [folded.column(name) for name in (*ROLLUP_DIMENSIONS, "clock")]
        *dimensions, clocks = (_texts(column) for column in columns)
        counts = folded.column("count").to_pylist()
        sums_s = folded.column("sum_s").to_pylist()
        cells = rollup.sparse(folded)
        with self._lock:
            for row, values in enumerate(zip(*dimensions, strict=True)):
                series, clock = self._bounded(values), clocks[row]
                if clock == rollup.REQUESTS:
                    self._requests[series] = self._requests.get(series, 0) + counts[row]
                elif clock in _HOP_OF_COLUMN:
                    key = (*_HOP_OF_COLUMN[clock], series)
                    self._hop_seconds[key] = self._hop_seconds.get(key, 0.0) + sums_s[row]
                else:
                    self._add(clock, series, *cells[row], sums_s[row])

    def render(self, tenant: str | None = None) -> str:
        """The series of one tenant, or all of them, in the Prometheus text format."""

        def shown(values: Values) -> bool:
            return tenant is None or values[_TENANT] == tenant

        with self._lock:
            parts = (
                self._rendered_requests(shown),
                self._rendered_clocks(shown),
                self._rendered_hops(shown),
            )
            return "".join(piece for part in parts for piece in part)

    def _bounded(self, values: Values) -> Values:
        """The values, or the one series that takes all past the bound."""
        if values not in self._known:
            if len(self._known) >= self.max_series:
                self.overflowed += 1
                return (OVERFLOW,) * len(values)
            self._known.add(values)
        return values

    def _add(
        self, clock: str, values: Values, buckets: NDArray[np.int16], counts: Counts, sum_s: float
    ) -> None:
        metric, vantage = _METRIC_OF_COLUMN[clock]
        series = self._histograms.setdefault(metric, {})
        key = (vantage, *values)
        if key not in series:
            none = np.zeros(histogram.BUCKETS, np.int64)
            series[key] = _Histogram(_prefixes(metric, vantage, values), none)
        changed = series[key]
        changed.counts[buckets] += counts  # each bucket once
        changed.sum_s += sum_s
        changed.text = None

    def _rendered_clocks(self, shown: _Shown) -> list[str]:
        pieces = []
        for metric, help_text in CLOCK_METRICS.values():
            if metric in self._histograms:
                pieces.append(head(metric, "histogram", help_text))
                series = self._histograms[metric].items()
                pieces += [h.rendered() for (_, *values), h in series if shown(tuple(values))]
        return pieces

    def _rendered_requests(self, shown: _Shown) -> list[str]:
        help_text = "Requests closed, late versions not counted."
        return [head(REQUESTS_METRIC, "counter", help_text)] + [
            f"{REQUESTS_METRIC}{{{_labels(values)}}} {count}\n"
            for values, count in self._requests.items()
            if shown(values)
        ]

    def _rendered_hops(self, shown: _Shown) -> list[str]:
        help_text = "Own time of each hop, before the first token and after it."
        return [head(HOP_METRIC, "counter", help_text)] + [
            f"{HOP_METRIC}{{{PHASE_LABEL}={quoted(phase)},{HOP_LABEL}={quoted(hop)},"
            f"{_labels(values)}}} {seconds}\n"
            for (phase, hop, values), seconds in self._hop_seconds.items()
            if shown(values)
        ]


def _texts(column: pa.ChunkedArray) -> list[str]:
    """A column of dictionaries as texts, each of them made once and not for every row."""
    texts: list[str] = []
    for chunk in column.chunks:
        known = chunk.dictionary.to_pylist()
        texts += [known[code] for code in chunk.indices.to_pylist()]
    return texts


def _prefixes(metric: str, vantage: str, values: Values) -> list[str]:
    """What stands in front of each number of one histogram, in the order they are rendered."""
    labels = _labels(values)
    if vantage:
        labels = f"{VANTAGE_LABEL}={quoted(vantage)},{labels}"
    buckets = [f'{metric}_bucket{{{labels},le="{le}"}} ' for le in _LE]
    return [*buckets, f"{metric}_sum{{{labels}}} ", f"{metric}_count{{{labels}}} "]


def _labels(values: Values) -> str:
    return labels_text(dict(zip(ROLLUP_DIMENSIONS, values, strict=True)))


def _metric_of_column() -> dict[str, tuple[str, str]]:
    """Metric name and vantage of each clock column; vantage is empty for the engine's queue
    and the token gaps, which have one place only."""
    found = {
        f"{clock}_{vantage}_s": (CLOCK_METRICS[clock][0], vantage)
        for clock in ("ttft", "tpot", "e2e")
        for vantage in VANTAGES
    }
    return found | {f"{clock}_s": (CLOCK_METRICS[clock][0], "") for clock in ("itl_max", "queue")}


_METRIC_OF_COLUMN: Final = _metric_of_column()
_HOP_OF_COLUMN: Final = {
    **{ttft_hop_column(hop): ("ttft", hop) for hop in (*HOPS, UNATTRIBUTED)},
    **{decode_hop_column(hop): ("decode", hop) for hop in (*HOPS, UNATTRIBUTED)},
}
