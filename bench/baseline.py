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
from tailburn.engine.baseline import deadlines, fold, hours, same_hour
from tailburn.engine.schema import REQUESTS, ROLLUP_DIMENSIONS, ROLLUPS

CLOCK: Final = "ttft_gateway_s"
BY: Final = ("service", "model", "request_type", "replica")
NOW: Final = 1_790_000_000_000_000_000
MODELS, TYPES, REPLICAS = 20, 5, 100
HOUR_ROWS: Final = 120_000
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
    """Fold an hour of requests, and set the deadlines of a minute of them."""
    load = pa.table(
        {"minute_ns": pa.array(np.arange(60) * rollup.MINUTE_NS), "service": ["chat"] * 60}
        | {"model": ["llama"] * 60, "rate_per_s": np.geomspace(1, 30, 60)}
    )
    rng = np.random.default_rng(2)
    tokens = rng.lognormal(7, 1, HOUR_ROWS).astype(np.int32)
    some = {
        "service": pa.array(["chat"] * HOUR_ROWS),
        "model": pa.array(["llama"] * HOUR_ROWS),
        "received_ns": pa.array(rng.integers(0, 60, HOUR_ROWS) * rollup.MINUTE_NS),
        "prompt_tokens": pa.array(tokens),
        "cached_tokens": pa.array(np.zeros(HOUR_ROWS, np.int32)),
        CLOCK: pa.array((0.05 + tokens * 1e-4) * rng.lognormal(0, 0.5, HOUR_ROWS)),
    }
    names = REQUESTS.names
    rows = pa.table(
        [some.get(n, pa.nulls(HOUR_ROWS)).cast(REQUESTS.field(n).type) for n in names], names
    )
    by = ("service", "model")
    folded = measure(lambda: fold(rows, load, by, [CLOCK]), repeats=3)
    cells = fold(rows, load, by, [CLOCK])
    yield Figure("requests folded by load", [HOUR_ROWS / folded.cpu_s], "requests/cpu-s")
    size = f"cells of an hour of {HOUR_ROWS:,} requests of one series"
    yield Figure(
        size,
        [cells.nbytes / 1e3],
        "kB",
        rows.select(list(some)).nbytes / 1e3,
        "the six columns read",
        True,
    )
    minute = rows.slice(0, HOUR_ROWS // 60)
    asked = measure(lambda: deadlines(cells, minute, load, by, CLOCK, 2 * 60 * rollup.MINUTE_NS))
    yield Figure(f"deadlines of {len(minute):,} requests", [asked.cpu_s * 1e3], "ms")


if __name__ == "__main__":
    show(list(figures()))
