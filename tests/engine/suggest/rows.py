"""Requests of a service that is well: lognormal first tokens and paces, a few failures."""

import numpy as np
import pyarrow as pa

from tailburn.engine.schema import REQUESTS
from tests.engine.store.samples import HOUR_NS, T0


def healthy(
    count: int, hours: int, seed: int = 1, *, failed: float = 0.0, **told: object
) -> pa.Table:
    """REQUESTS over so many hours from T0 on; `told`: one value for a whole column."""
    draw = np.random.default_rng(seed)
    columns: dict[str, object] = {
        "request_id": [f"{i:016x}" for i in range(count)],
        "trace_id": [f"{i:032x}" for i in range(count)],
        "version": 1,
        "tombstone": False,
        "model": "llama",
        "request_type": "chat",
        "received_ns": np.sort(draw.integers(0, hours * HOUR_NS, count)) + T0,
        "streamed": True,
        "output_tokens": 64,
        "weight": 1.0,
        "outcome": np.where(draw.random(count) < failed, "error", "ok"),
        "ttft_gateway_s": draw.lognormal(np.log(0.2), 0.5, count),
        "tpot_gateway_s": draw.lognormal(np.log(0.02), 0.2, count),
        "e2e_gateway_s": draw.lognormal(np.log(2), 0.5, count),
    } | told
    arrays = [_column(columns.get(field.name), field.type, count) for field in REQUESTS]
    return pa.table(arrays, schema=REQUESTS)


def _column(value: object, kind: pa.DataType, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    many = value if isinstance(value, list | np.ndarray) else [value] * count
    return pa.array(many).cast(kind)
