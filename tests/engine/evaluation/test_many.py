"""A thousand healthy series, thin ones most of all, and no page in a day; an outage pages."""

import json
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine import histogram
from tailburn.engine.evaluation import AlertKey, Flip, State, Status, evaluate, history_of
from tailburn.engine.schema import ROLLUPS, VERDICTS
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Place, Slo, Tier, objectives
from tailburn.rules.ruleset import watches_of

MINUTE_NS: Final = 60_000_000_000
BEGIN: Final = 28_000_080
SERIES: Final = 1_000
HEALTHY: Final = 0.5  # of each budget
LATE: Final = 0.005  # of deadlines: they are above p99
SLO: Final = Slo(
    "chat",
    Place("chat.yaml", 1),
    by=("model",),
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}, Tier.CRITICAL: {"p50": 1.0, "p95": 3.0}}},
    availability_ratio=0.999,
    goodput_ratio=0.95,
)


def pages(minutes: int, down_from: int | None = None) -> list[Flip]:
    """What fires as a page; from a minute on everything of the first series is bad."""
    rng = np.random.default_rng(5)
    watches = [w for w in watches_of([SLO]) if w.key.severity == "page"]
    rates = np.exp(rng.uniform(np.log(0.3), np.log(600), SERIES))  # requests a minute
    budgets = [(o.name, definition_of(SLO, o), HEALTHY * o.budget_ratio) for o in objectives(SLO)]
    budgets.append(("deadline", "", LATE))
    texts = pa.array([json.dumps({"model": f"m{i}"}) for i in range(SERIES)])
    models = pa.array([f"m{i}" for i in range(SERIES)])
    quick, slow = (int(histogram.bucket_of(np.array([s]))[0]) for s in (0.1, 4.0))
    history, found = history_of(watches), list[Flip]()
    states: dict[AlertKey, State] = {}
    for minute in range(minutes):
        begin_ns = (BEGIN + minute) * MINUTE_NS
        requests = rng.poisson(rates)
        is_down = down_from is not None and minute >= down_from
        for name, definition, share in budgets:
            bad = rng.binomial(requests, share)
            if is_down:
                bad[0] = requests[0]
            history.take_verdicts(
                _table(
                    VERDICTS, SERIES,
                    minute_ns=np.full(SERIES, begin_ns), slo=["chat"] * SERIES,
                    objective=[name] * SERIES, definition=[definition] * SERIES, by=texts,
                    requests=requests, bad=bad, unmeasured=np.zeros(SERIES, int),
                    late=np.zeros(SERIES, int),
                )
            )  # fmt: skip
        over = rng.binomial(requests, 0.01)  # of the time that is critical at p95: a fifth
        counts = np.stack([requests - over, over], axis=1).reshape(-1)
        offsets = pa.array(np.arange(SERIES + 1, dtype=np.int32) * 2)
        buckets = pa.array(np.tile(np.array([quick, slow], np.int16), SERIES))
        history.take_rollups(
            _table(
                ROLLUPS, SERIES,
                minute_ns=np.full(SERIES, begin_ns), model=models,
                clock=["ttft_gateway_s"] * SERIES, count=requests,
                buckets=pa.ListArray.from_arrays(offsets, buckets),
                counts=pa.ListArray.from_arrays(offsets, pa.array(counts)),
            )
        )  # fmt: skip
        states, flips = evaluate(watches, history, states, (), begin_ns + MINUTE_NS)
        found += [flip for flip in flips if flip.new is Status.FIRING]
    return found


def _table(schema: pa.Schema, rows: int, **columns: object) -> pa.Table:
    arrays = [
        pa.nulls(rows, f.type) if f.name not in columns
        else pa.array(columns[f.name]).cast(f.type)
        for f in schema
    ]  # fmt: skip
    return pa.table(arrays, schema=schema)


def test_a_hundred_minutes_of_a_thousand_healthy_series_give_no_page() -> None:
    assert pages(100) == []


@pytest.mark.long
def test_a_day_of_a_thousand_healthy_series_gives_no_page() -> None:
    assert pages(24 * 60) == []


def test_one_of_a_thousand_that_is_down_pages() -> None:
    found = pages(90, down_from=60)
    assert {flip.key.by for flip in found} == {(("model", "m0"),)}
    assert {flip.key.alertname for flip in found} >= {"TailburnBudgetBurn", "TailburnDeadlineBurn"}
