"""Throughput bought with delay: first tokens later and more tokens a second, so the batch grew.

An engine that runs more requests at once makes more tokens and lets each wait longer. Both sides
are compared beyond what chance gives: the p95 by the intervals of its order statistics, tokens
by a least growth.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.engine.grouping import numbers, text, weights
from tailburn.engine.intervals import quantile_ranks
from tailburn.engine.names import UNKNOWN, VANTAGES

LEAST_GROWTH: Final = 1.1
_Q: Final = 0.95
TRADE_COLUMNS: Final = ("output_tokens", "weight", "replica", *(f"ttft_{v}_s" for v in VANTAGES))


@dataclass(frozen=True)
class TradeOff:
    """Each figure now over what it was; above 1 it grew."""

    vantage: str  # at which the first token was measured, the engine's if it tells
    p95_s: float
    baseline_p95_s: float
    tokens_ratio: float  # output tokens a second
    per_replica_ratio: float | None  # the same, by replicas that served; None: not told
    requests_ratio: float  # requests a second

    @property
    def p95_ratio(self) -> float:
        return self.p95_s / self.baseline_p95_s


def trade_off(requests: pa.Table, baseline: pa.Table) -> TradeOff | None:
    """That p95 of the first token and tokens a second are both up; None where they are not.

    Both tables are of windows of one length, with `TRADE_COLUMNS`.
    """
    tokens, old_tokens = _tokens(requests), _tokens(baseline)
    if not old_tokens or tokens < LEAST_GROWTH * old_tokens:
        return None
    for vantage in reversed(VANTAGES):
        now, before = (_p95(table, f"ttft_{vantage}_s") for table in (requests, baseline))
        if now is None or before is None:
            continue
        (value, low), (old, high) = (now[0], now[1]), (before[0], before[2])
        if low <= high or value < LEAST_GROWTH * old:
            return None
        replicas, old_replicas = _replicas(requests), _replicas(baseline)
        ratio = tokens / old_tokens
        each = ratio * old_replicas / replicas if replicas and old_replicas else None
        asked = float(weights(requests).sum() / weights(baseline).sum())
        return TradeOff(vantage, value, old, ratio, each, asked)
    return None


def _p95(requests: pa.Table, column: str) -> tuple[float, float, float] | None:
    """p95 of a clock and its bounds; None where too few requests have it."""
    values = numbers(requests.column(column), np.nan)
    measured = np.sort(values[(values >= 0) & (values < np.inf)])
    ranks = quantile_ranks(len(measured), _Q)
    if ranks.low is None or ranks.high is None:
        return None
    middle = int(np.ceil(_Q * len(measured))) - 1
    low, high = float(measured[ranks.low - 1]), float(measured[ranks.high - 1])
    return float(measured[middle]), low, high


def _tokens(requests: pa.Table) -> float:
    return float((numbers(requests.column("output_tokens"), 0.0) * weights(requests)).sum())


def _replicas(requests: pa.Table) -> int:
    return len(set(text(requests.column("replica"), UNKNOWN).unique().to_pylist()) - {UNKNOWN})
