"""A minute of evaluation in process: every alert of an SLO with a budget for each model.

The rows of one minute are taken in and all alerts evaluated, as the service does each minute, an
hour behind them. The baseline sums the same windows of the burn alerts alone, series by series.

python -m bench.evaluation
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from bench.figures import Figure, show
from tailburn.engine import histogram
from tailburn.engine.evaluation import AlertKey, History, State, Watch, evaluate, history_of
from tailburn.engine.schema import ROLLUPS, VERDICTS
from tailburn.engine.slo import burn
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Place, Regression, Slo, Tier, objectives
from tailburn.rules.ruleset import watches_of

SERIES: Final = (10, 100, 1_000, 10_000)
BASELINE_UP_TO: Final = 1_000
BEGIN: Final = 28_000_080  # minutes since the epoch
BEHIND: Final = 60  # minutes
MINUTES: Final = 8  # evaluated: two of them with the slow alerts
MINUTE_NS: Final = 60_000_000_000
REQUESTS: Final = 60  # of a series in a minute
SLO: Final = Slo(
    "bench",
    Place("bench.yaml", 1),
    by=("model",),
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}, Tier.CRITICAL: {"p50": 1.0}}},
    availability_ratio=0.999,
    goodput_ratio=0.95,
    regression=Regression(),
)


def figures() -> Iterator[Figure]:
    """CPU milliseconds of a minute, by the number of series: models x budgets."""
    watches = watches_of([SLO])
    for models in (max(n // len(objectives(SLO)), 1) for n in SERIES):
        series = models * len(objectives(SLO))
        ours = _ours(watches, models)
        baseline = _baseline_ms(models) if series <= BASELINE_UP_TO else None
        yield Figure(
            f"all alerts of {series:,} series, a minute", ours, "ms", baseline,
            "burn alerts alone, a Python loop over series" if baseline else "",
            smaller_is_better=True,
        )  # fmt: skip


def _ours(watches: Sequence[Watch], models: int) -> list[float]:
    history, states = history_of(watches), dict[AlertKey, State]()
    for minute in range(BEGIN - BEHIND, BEGIN):
        _take(history, minute, models)
    took_ms = []
    for minute in range(BEGIN, BEGIN + MINUTES):
        begun_s = time.process_time()
        _take(history, minute, models)
        states, _ = evaluate(watches, history, states, (), (minute + 1) * MINUTE_NS)
        history.trim((minute + 1) * MINUTE_NS)
        took_ms.append((time.process_time() - begun_s) * 1e3)
    return took_ms


def _take(history: History, minute: int, models: int) -> None:
    minute_ns = minute * MINUTE_NS
    history.cover(minute_ns, minute_ns + MINUTE_NS)
    history.take_verdicts(_verdicts(minute_ns, models))
    history.take_rollups(_rollups(minute_ns, models))


def _verdicts(minute_ns: int, models: int) -> pa.Table:
    budgets = objectives(SLO)
    rows = models * len(budgets)
    by = [json.dumps({"model": f"m{i}"}) for i in range(models)]
    told = {
        "minute_ns": np.full(rows, minute_ns),
        "slo": [SLO.name] * rows,
        "objective": [o.name for o in budgets for _ in range(models)],
        "definition": [definition_of(SLO, o) for o in budgets for _ in range(models)],
        "by": by * len(budgets),
        "requests": np.full(rows, REQUESTS),
        "bad": np.arange(rows) % 2,
        "unmeasured": np.zeros(rows, np.int64),
        "late": np.zeros(rows, np.int64),
    }
    return pa.table({name: told[name] for name in VERDICTS.names}).cast(VERDICTS)


def _rollups(minute_ns: int, models: int) -> pa.Table:
    buckets = histogram.bucket_of(np.array([0.1, 0.2, 0.3])).astype(np.int16)
    ends = np.arange(models + 1, dtype=np.int32) * len(buckets)
    told = {
        "minute_ns": np.full(models, minute_ns),
        "model": [f"m{i}" for i in range(models)],
        "clock": [f"ttft_{SLO.vantage}_s"] * models,
        "count": np.full(models, REQUESTS),
        "buckets": pa.ListArray.from_arrays(ends, np.tile(buckets, models)),
        "counts": pa.ListArray.from_arrays(ends, np.full(3 * models, REQUESTS // 3)),
    }
    columns = [
        pa.array(told[f.name]).cast(f.type) if f.name in told else pa.nulls(models, f.type)
        for f in ROLLUPS
    ]
    return pa.table(columns, schema=ROLLUPS)


def _baseline_ms(models: int) -> float:
    """The windows of every burn alert summed for one series after the other."""
    window_s = burn.window_s(SLO.window)
    pairs = [burn.pairs(o.budget_ratio, window_s) for o in objectives(SLO)]
    longest = max(pair.long_s for some in pairs for pair in some) // 60
    requests, bad = [REQUESTS] * longest, [0, 1] * (longest // 2)
    begun_s = time.process_time()
    firing = 0
    for _ in range(models):
        for some in pairs:
            for pair in some:
                over = True
                for looked_back in (pair.long_s // 60, pair.short_s // 60):
                    share = sum(bad[-looked_back:]) / sum(requests[-looked_back:])
                    over &= share > pair.threshold_ratio
                firing += over
    return (time.process_time() - begun_s) * 1e3


if __name__ == "__main__":
    show(list(figures()))
