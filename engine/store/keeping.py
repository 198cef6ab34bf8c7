"""How much of each table is kept, and which spans of an hour outlive its thinning."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tailburn.engine.grouping import F64, distinct, numbers, text
from tailburn.engine.names import UNKNOWN, VANTAGES
from tailburn.engine.store.api import TraceIds
from tailburn.engine.store.rows import ids_of_binary, ids_of_hex, member

USUAL_KEPT_H: Final = 240
"""Deadlines rest on the hours of the day and of seven before it."""
SLOW_SHARE: Final = 0.05
FAILED: Final = ("error", "cancelled")
THINNING_COLUMNS: Final = (
    "trace_id",
    "service",
    "outcome",
    *(f"{clock}_{vantage}_s" for clock in ("ttft", "e2e") for vantage in VANTAGES),
)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Kept:
    """Of one table: hours older than this go, and the oldest beyond this many bytes."""

    hours: float
    bytes: int = 1 << 62


@dataclass(frozen=True)
class Keeping:
    """Of the whole store. `spans_full`: until when every span is kept."""

    requests: Kept = field(default_factory=lambda: Kept(2160))
    spans: Kept = field(default_factory=lambda: Kept(168))
    rollups: Kept = field(default_factory=lambda: Kept(9600))
    signals: Kept = field(default_factory=lambda: Kept(168))
    verdicts: Kept = field(default_factory=lambda: Kept(9600))
    excess: Kept = field(default_factory=lambda: Kept(9600))
    usual: Kept = field(default_factory=lambda: Kept(USUAL_KEPT_H))
    spans_full: Kept = field(default_factory=lambda: Kept(6))
    sample_ratio: float = 0.05  # of the traces that are neither slow nor failed

    def __post_init__(self) -> None:
        if not 0 < self.sample_ratio <= 1:
            raise ValueError(f"sample ratio must be in (0, 1], got {self.sample_ratio!r}")

    def of(self, table: str) -> Kept:
        """The bounds of a table by name."""
        kept: Kept = getattr(self, table)
        return kept


def notable_traces(requests: pa.Table) -> TraceIds:
    """The traces, sorted, whose every span is kept.

    A request is notable that failed, or is among the slowest `SLOW_SHARE` of its service by
    TTFT or by E2E at the outermost vantage that measured it. `requests` are those of an hour,
    with `THINNING_COLUMNS`.
    """
    if len(requests) == 0:
        return np.zeros(0, "S16")
    notable = pc.is_in(requests.column("outcome").cast(pa.string()), pa.array(FAILED)).to_numpy()
    services = distinct([text(requests.column("service"), UNKNOWN)])[1]
    for clock in ("ttft", "e2e"):
        columns = [requests.column(f"{clock}_{v}_s") for v in VANTAGES]
        values = numbers(pc.coalesce(*columns), np.nan)
        for service in np.unique(services):
            here = (services == service) & ~np.isnan(values)
            if here.any():
                notable = notable | (here & (values >= _slow_from(values[here])))
    return np.unique(ids_of_hex(requests.column("trace_id"))[notable])


def thin(spans: pa.Table, notable: TraceIds, ratio: float) -> tuple[pa.Table, Counter[str]]:
    """The spans kept, by whole trace, and how many were dropped of each resource.

    Spans of the sample stand for those dropped: their weight grows by 1 / `ratio`.
    """
    traces = ids_of_binary(spans.column("trace_id"))
    full = member(traces, notable)
    sampled = ~full & in_sample(traces, ratio)
    dropped = spans.column("resource").filter(pa.array(~(full | sampled)))
    counted = pc.value_counts(text(dropped, "").cast(pa.string()))
    weight = np.where(sampled, 1 / ratio, 1.0) * numbers(spans.column("weight"), 1.0)
    at = spans.schema.get_field_index("weight")
    weighted = spans.set_column(at, spans.schema.field(at), pa.array(weight.astype(np.float32)))
    by_resource = Counter({x["values"]: x["counts"] for x in counted.to_pylist()})
    return weighted.filter(pa.array(full | sampled)), by_resource


def in_sample(traces: TraceIds, ratio: float) -> NDArray[np.bool_]:
    """Whether each trace is in the sample: the same answer for a trace at any time.

    Either half of an id may be the same in many: ids of 64 bits begin with zeros.
    """
    halves = np.ascontiguousarray(traces).view("<u8").reshape(-1, 2)
    with np.errstate(over="ignore"):
        x = halves[:, 0] * _GOLDEN + halves[:, 1]
        x = (x ^ (x >> np.uint64(30))) * _MIX[0]
        x = (x ^ (x >> np.uint64(27))) * _MIX[1]
        x ^= x >> np.uint64(31)
    share: F64 = x.astype(np.float64) / 2.0**64
    return share < ratio


def _slow_from(values: F64) -> float:
    """The duration from which on the slowest share begins, at least the slowest one."""
    slow = max(int(np.ceil(len(values) * SLOW_SHARE)), 1)
    return float(np.partition(values, len(values) - slow)[len(values) - slow])
