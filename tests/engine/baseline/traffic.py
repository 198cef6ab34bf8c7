"""Requests of a small fleet, as they close: a load, and how long they take at it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailburn.engine import rollup
from tailburn.engine.grouping import F64, I64
from tailburn.engine.schema import REQUESTS
from tests.engine.store import samples

TTFT, TPOT = "ttft_gateway_s", "tpot_gateway_s"
MINUTE = rollup.MINUTE_NS
HOUR = 60 * MINUTE


@dataclass(frozen=True)
class Fleet:
    """`busy(rate)` is how much longer requests take at so many a second."""

    busy: Callable[[float], float] = lambda rate_per_s: 1 + rate_per_s / 10
    noise: float = 0.2

    def requests(
        self, rates_per_s: F64, seed: int, slow: float = 1.0, first_minute: int = 0
    ) -> pa.Table:
        """Requests of one minute after another, `slow` times slower than they should be."""
        rng = np.random.default_rng(seed)
        count = rng.poisson(np.asarray(rates_per_s) * 60)
        minute: I64 = np.repeat(np.arange(len(count)) + first_minute, count)
        size = len(minute)
        received = np.sort(samples.T0 + minute * MINUTE + rng.integers(0, MINUTE, size))
        tokens = rng.lognormal(6.5, 1, size).astype(np.int32) + 1
        load = np.repeat([self.busy(rate) for rate in rates_per_s], count)
        noise = rng.lognormal(0, self.noise, size)
        ttft = (0.05 + tokens * 1e-4) * load * noise * slow
        own = {
            "request_id": pa.array([f"{i:016x}" for i in range(size)]),
            "version": np.ones(size, np.int32),
            "tombstone": np.zeros(size, np.bool_),
            "service": ["chat"] * size,
            "model": ["llama"] * size,
            "replica": pa.array([f"r{i}" for i in range(2)]).take(pa.array(np.arange(size) % 2)),
            "received_ns": received,
            "prompt_tokens": tokens,
            "cached_tokens": np.zeros(size, np.int32),
            "output_tokens": np.full(size, 64, np.int32),
            "outcome": ["ok"] * size,
            "streamed": np.ones(size, np.bool_),
            TTFT: ttft,
            TPOT: 0.02 * load * rng.lognormal(0, self.noise, size) * slow,
            "e2e_gateway_s": ttft + 2,
        }
        columns = [
            pa.array(own[f.name]).cast(f.type) if f.name in own else pa.nulls(size, f.type)
            for f in REQUESTS
        ]
        return pa.table(columns, schema=REQUESTS)
