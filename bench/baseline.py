"""What baselines cost: 10,000 series of three days at once, against pandas.

python -m bench.baseline
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from bench.figures import Figure, show
from bench.store import measure, words
from tailburn.engine import histogram, rollup
from tailburn.engine.baseline import Learnt, Usual, hours, same_hour
from tailburn.engine.baseline.load import HOUR_NS, UNTOLD_HITS, Matched
from tailburn.engine.baseline.usual import NEEDED
from tailburn.engine.schema import REQUESTS, ROLLUP_DIMENSIONS, ROLLUPS, USUAL, USUAL_DIMENSIONS

CLOCK: Final = "ttft_gateway_s"
BY: Final = ("service", "model", "request_type", "replica")
NOW: Final = 1_790_000_000_000_000_000
MODELS, TYPES, REPLICAS = 20, 5, 100
HOURS: Final = 8
HOUR_ROWS: Final = 200_000
BATCH: Final = 1_000
REPLICAS_JUDGED: Final = 20
A_MINUTE: Final = 6  # requests of a series


def rollups(seed: int = 1) -> pa.Table:
    """A row a minute and series in the hour of each of three days."""
    rng = np.random.default_rng(seed)
    series = MODELS * TYPES * REPLICAS
    minutes = np.concatenate([np.arange(s, u, rollup.MINUTE_NS) for s, u in hours(NOW)])
    rows = series * len(minutes)
    one = np.arange(rows) % series
    parts = {
        "model": (one // (TYPES * REPLICAS), MODELS),
        "request_type": (one // REPLICAS % TYPES, TYPES),
        "replica": (one % REPLICAS, REPLICAS),
    }
    each = histogram.bucket_of(rng.lognormal(-1.5, 0.8, rows * A_MINUTE))
    lists = pa.array(np.arange(0, rows * A_MINUTE + 1, A_MINUTE, dtype=np.int32))
    middle = histogram.UPPER_BOUNDS_S[each.reshape(rows, A_MINUTE)]
    columns = {"minute_ns": pa.array(np.repeat(minutes, series))}
    for name in ROLLUP_DIMENSIONS:
        code, count = parts.get(name, (np.zeros(rows), 1))
        texts = pa.array([f"{name}-{i}" for i in range(count)])
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), texts)
    columns |= {
        "clock": words(rng, rows, [CLOCK]),
        "count": pa.array(np.full(rows, A_MINUTE)),
        "sum_s": pa.array(middle.sum(axis=1)),
        "min_s": pa.array(middle.min(axis=1)),
        "max_s": pa.array(middle.max(axis=1)),
        "buckets": pa.ListArray.from_arrays(lists, pa.array(each)),
        "counts": pa.ListArray.from_arrays(lists, pa.array(np.ones(len(each), np.int64))),
    }
    return pa.table(columns, schema=ROLLUPS)


def with_pandas(table: pa.Table) -> pd.DataFrame:
    """p99 of each series and day from the same buckets, and the median of the days."""
    frame = table.select(["minute_ns", *BY, "buckets", "counts"]).to_pandas()
    frame["day"] = (NOW - frame.pop("minute_ns") + 43_200_000_000_000) // 86_400_000_000_000
    cells = frame.explode(["buckets", "counts"]).astype({"buckets": int, "counts": int})
    keys = [*BY, "day"]
    summed = cells.groupby([*keys, "buckets"], observed=True)["counts"].sum().reset_index()
    by_key = summed.groupby(keys, observed=True)["counts"]
    tail = summed[by_key.cumsum() >= 0.99 * by_key.transform("sum")]
    first = tail.groupby(keys, observed=True)["buckets"].min()
    return first.groupby(list(BY), observed=True).median()


def figures() -> Iterator[Figure]:
    """The same hour of 10,000 series, pooling included; then all of them thin; then deadlines."""
    table = rollups()
    series = MODELS * TYPES * REPLICAS
    ours = measure(lambda: same_hour(table, CLOCK, BY, NOW), repeats=3)
    pandas = measure(lambda: with_pandas(table), repeats=1)
    yield Figure(
        f"baselines of {series:,} series, three days", [ours.cpu_s], "cpu-s",
        pandas.cpu_s, "pandas, without pooling", smaller_is_better=True,
    )  # fmt: skip
    thin = measure(lambda: same_hour(table, CLOCK, BY, NOW, minimum=1000), repeats=3)
    yield Figure(f"the same, all {series:,} pooled to a parent", [thin.cpu_s], "cpu-s")
    yield from _deadlines()


def _deadlines() -> Iterator[Figure]:
    """Judge and learn from requests as they close, two seconds of 500 a second at a time."""
    day = [requests(hour) for hour in range(HOURS)]
    usual = Usual(lambda since_ns: USUAL.empty_table())
    for rows in day:
        usual.take(rows)
    cells = pa.concat_tables([usual.take_rows(), usual.open_cells()])
    size = f"cells of {HOURS} hours of {HOUR_ROWS:,} requests, {REPLICAS_JUDGED} replicas"
    read = sum(rows.select(list(NEEDED)).nbytes for rows in day) / 1e6
    yield Figure(size, [cells.nbytes / 1e6], "MB", read, "the columns read", True)
    now = requests(HOURS)
    batches = [now.slice(at, BATCH) for at in range(0, HOUR_ROWS, BATCH)]
    usual.take(batches[0])  # what is fitted once an hour
    judged = measure(lambda: [usual.take(batch) for batch in batches[1:]], repeats=1)
    per = 100_000 / (HOUR_ROWS - BATCH)
    ours = f"deadlines of 100,000 requests, judged and learnt, {BATCH:,} at a time"
    anew = measure(lambda: _anew(cells, batches[1]), repeats=3).cpu_s * 100_000 / BATCH
    fitted = "the lines fitted anew for each"
    yield Figure(ours, [judged.cpu_s * per], "cpu-s", anew, fitted, smaller_is_better=True)


def requests(hour: int) -> pa.Table:
    """An hour of requests to the replicas of one model."""
    rng = np.random.default_rng(hour)
    tokens = rng.lognormal(7, 1, HOUR_ROWS).astype(np.int32) + 1
    slow = rng.lognormal(0, 0.3, (2, HOUR_ROWS))
    replicas = pa.array([f"replica-{i}" for i in range(REPLICAS_JUDGED)])
    types = pa.array(["chat", "code", "document"])
    received = np.sort(rng.integers(0, HOUR_NS, HOUR_ROWS)) + hour * HOUR_NS
    some = {
        "service": pa.array(["chat"] * HOUR_ROWS),
        "model": pa.array(["llama"] * HOUR_ROWS),
        "replica": replicas.take(pa.array(rng.integers(0, REPLICAS_JUDGED, HOUR_ROWS))),
        "request_type": types.take(pa.array(rng.integers(0, 3, HOUR_ROWS))),
        "received_ns": pa.array(received),
        "prompt_tokens": pa.array(tokens),
        "cached_tokens": pa.array(np.zeros(HOUR_ROWS, np.int32)),
        "output_tokens": pa.array(np.full(HOUR_ROWS, 100)),
        CLOCK: pa.array((0.05 + tokens * 1e-4) * slow[0]),
        "tpot_gateway_s": pa.array(0.02 * slow[1]),
    }
    columns = [
        some[f.name].cast(f.type) if f.name in some else pa.nulls(HOUR_ROWS, f.type)
        for f in REQUESTS
    ]
    return pa.table(columns, schema=REQUESTS)


def _anew(cells: pa.Table, rows: pa.Table) -> None:
    """The same deadlines without anything kept from one batch to the next."""
    learnt = Learnt(cells, USUAL_DIMENSIONS)
    rate = np.full(len(rows), HOUR_ROWS / 3_600 / REPLICAS_JUDGED)
    for clock in (CLOCK, "tpot_gateway_s"):
        learnt.deadlines(rows, Matched(rate, np.full(len(rows), UNTOLD_HITS)), clock)


if __name__ == "__main__":
    show(list(figures()))
