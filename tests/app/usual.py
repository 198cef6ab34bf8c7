"""A store of four days of requests, their rollups and what was learnt of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.baseline import Usual
from tailburn.engine.rollup import fold
from tailburn.engine.schema import USUAL
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tests.engine.baseline.traffic import Fleet

DAY = 24 * 60  # minutes


def store_of_days(
    folder: Path,
    slow_day: int | None = None,
    slow: float = 1.0,
    days: int = 4,
    seed: int = 7,
    renamed: str | None = None,
) -> tuple[ParquetStore, int]:
    """A quarter of an hour and the two hours around it on each day; and the end of it all in ns.

    `slow_day` days before the end requests are 9 times slower; today `slow` times. `renamed`: the
    replica r1 is called this today.
    """
    fleet, parts = Fleet(), []
    for ago in range(days - 1, -1, -1):
        factor = slow if ago == 0 else 9.0 if ago == slow_day else 1.0
        first = (days - 1 - ago) * DAY
        minutes = 120 if ago else 75
        part = fleet.requests(np.full(minutes, 2.0), seed + ago, factor, first)
        parts.append(_typed(part, renamed if ago == 0 else None))
    requests = pa.concat_tables(parts)
    usual = Usual(lambda since_ns: USUAL.empty_table())
    usual.take(requests)
    store = ParquetStore(folder)
    for table, rows in (
        ("requests", requests),
        ("rollups", fold(requests)),
        ("usual", usual.take_rows()),
    ):
        store.publish(table, rows, LogRange(1, 1))
    last = requests["received_ns"].to_numpy().max()
    return store, int(last) // (60 * 10**9) * 60 * 10**9 + 60 * 10**9


def _typed(requests: pa.Table, renamed: str | None) -> pa.Table:
    """Every second pair of requests is code, the others are chat."""
    kinds = pa.array(["chat", "code"]).take(pa.array(np.arange(len(requests)) // 2 % 2))
    columns = {"request_type": kinds}
    if renamed is not None:
        replicas = requests["replica"].cast(pa.string())
        columns["replica"] = pc.if_else(pc.equal(replicas, "r1"), renamed, replicas)
    for name, values in columns.items():
        at = requests.column_names.index(name)
        field = requests.schema.field(at)
        requests = requests.set_column(at, field, values.cast(field.type))
    return requests
