"""The baseline: a roofline of five terms, as published fits of served engines have it.

    step = w weights/(TP BW) + k KV/(TP BW) + r 2 layers AR + p prefill/(TP FLOPs) + c0

The all-reduce is looked up in the measured table; nothing else is measured, so that the
time no kernel undercuts falls to r and c0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.lab.data import only, read_table
from bench.lab.kernels import GPUS
from tailburn.lab.physics.calibrate import Observed
from tailburn.lab.physics.models import Model

F64 = NDArray[np.float64]

PEAK_TB_S = {"H100": 3.35, "H200": 4.8}
PEAK_FP8_TFLOPS = 1_979.0


@dataclass(frozen=True)
class Fault:
    """What is off by how much: factors on bandwidth, all-reduce, arithmetic, host."""

    hbm: float = 1.0
    allreduce: float = 1.0
    clock: float = 1.0
    host: float = 1.0


NONE = Fault()


def terms_ms(model: Model, gpu: str, ranks: int, seen: Observed, fault: Fault) -> F64:
    """One column a term (ms a step at factor 1), one row an observation; fp8 weights."""
    bandwidth = PEAK_TB_S[gpu] * 1e9 * ranks * fault.hbm  # bytes a ms
    weights = np.full(len(seen), model.parameters / bandwidth)
    reading = seen.kv_tokens * model.kv_bytes_per_token("bf16") / bandwidth
    ring = only(read_table("allreduce_us_nvlink.csv.gz"), _of(gpu))
    rounds = 2 * model.layers * fault.allreduce / 1e3
    size = np.log(seen.batch * model.hidden)
    exchange = np.zeros(len(seen))
    if ranks > 1:
        known = np.log(ring["message_size"])
        exchange = rounds * np.exp(np.interp(size, known, np.log(ring[f"vllmgraph{ranks}"])))
    context = seen.chunk_pairs / np.maximum(seen.chunk_tokens, 1) * 2
    work = 2 * model.parameters + 2 * model.layers * model.hidden * context
    flops = PEAK_FP8_TFLOPS * 1e9 * ranks * fault.clock
    prefill = seen.chunk_share * seen.chunk_tokens * work / flops
    host = np.full(len(seen), fault.host)
    return np.stack([weights, reading, exchange, prefill, host], axis=1)


def fit(terms: F64, step_ms: F64) -> F64:
    """The non-negative factors with the least relative error."""
    used = list(range(terms.shape[1]))
    while True:
        found = np.linalg.lstsq(terms[:, used] / step_ms[:, None], np.ones(len(step_ms)))[0]
        if (found >= 0).all():
            break
        used = [term for term, factor in zip(used, found, strict=True) if factor >= 0]
    factors = np.zeros(terms.shape[1])
    factors[used] = found
    return factors


def _of(gpu: str) -> NDArray[np.bool_]:
    return np.asarray(read_table("allreduce_us_nvlink.csv.gz")["gpu"] == GPUS[gpu])
