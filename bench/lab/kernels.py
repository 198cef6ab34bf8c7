"""Fit the kernel figures that `lab.physics.gpus` carries, from tables of measured kernels.

    python -m bench.lab.kernels [--data FOLDER]

The tables are those of aiconfigurator (Apache-2.0), as filtered into FOLDER; nothing of
them is kept but what is printed here.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.lab.data import Table, data_folder, read_table
from tailburn.lab.physics.fitting import Fit, fit_positive

F64 = NDArray[np.float64]

GPUS = {"A100": "a100_sxm", "H100": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm"}
DTYPES = {"bf16": ("bfloat16", 2), "fp8": ("fp8", 1)}

_SMALLEST_WEIGHT = 2e6  # elements; smaller products are not found in the layers of served models
_MOST_ROWS = 17_000


@dataclass(frozen=True)
class Figure:
    """One kernel's fit: its numbers in the order of the dataclass in `gpus`, and its error."""

    kernel: str
    gpu: str
    kind: str
    numbers: tuple[float, ...]
    mean_error: float
    rows: int


def joined(one: F64, other: F64, bend: float) -> F64:
    """The same bend between two bounds that a step of the lab has."""
    high, low = np.maximum(one, other), np.minimum(one, other)
    return np.asarray(high * (1 + (low / high) ** bend) ** (1 / bend))


def gemm(table: Table, gpu: str, dtype: str) -> Figure | None:
    """us = floor + row m/(m + half) + (bytes/read, flops/arithmetic joined)."""
    name, size = DTYPES[dtype]
    held = (table["gpu"] == GPUS[gpu]) & (table["gemm_dtype"] == name)
    held &= (table["n"] * table["k"] >= _SMALLEST_WEIGHT) & (table["m"] <= _MOST_ROWS)
    if not held.any():
        return None
    m, weights = table["m"][held], (table["n"] * table["k"])[held]
    us = table["us"][held]

    def left(x: F64) -> F64:
        read, work = weights * size / (x[3] * 1e6), 2 * m * weights / (x[4] * 1e6)
        return np.log((x[0] + x[1] * m / (m + x[2]) + joined(read, work, x[5])) / us)

    fit = fit_positive(left, np.array([5.0, 2.0, 100.0, 3.0, 600.0, 2.0]))
    return _figure("gemm", gpu, dtype, fit)


def attention(table: Table, gpu: str, dtype: str) -> Figure | None:
    """us = floor + sequence heads/64 batch + bytes/read, where the GPU is filled.

    Small products of batch and heads ran on another kernel in the H200's table (a fifth of
    the bandwidth), which its engines do not show: left out, as is what fits the L2 cache.
    """
    name, size = DTYPES[dtype]
    read = table["batch_size"] * table["ctx"] * table["num_key_value_heads"] * 256.0 * size
    filled = table["batch_size"] * table["num_key_value_heads"] >= 64
    held = (table["gpu"] == GPUS[gpu]) & (table["kv_cache_dtype"] == name)
    held &= (filled & (read > 60e6)) | (table["ctx"] == 128)
    held &= table["batch_size"] <= 512
    if not held.any():
        return None
    sequences = (table["batch_size"] * table["num_heads"])[held] / 64
    size_of, us = read[held], table["us"][held]

    def left(x: F64) -> F64:
        return np.log((x[0] + x[1] * sequences + size_of / (x[2] * 1e6)) / us)

    fit = fit_positive(left, np.array([10.0, 0.1, 3.0]))
    return _figure("attention", gpu, dtype, fit)


def allreduce(table: Table, gpu: str, ranks: int) -> Figure | None:
    """us = (floor, bytes/bandwidth joined) inside a graph, and the floor outside of one."""
    held = (table["gpu"] == GPUS[gpu]) & np.isfinite(table[f"vllmgraph{ranks}"])
    if not held.any():
        return None
    size, us = 2 * table["message_size"][held], table[f"vllmgraph{ranks}"][held]
    eager = table[f"vllmeager{ranks}"][held]

    def left(x: F64) -> F64:
        return np.log(joined(np.full_like(us, x[0]), size / (x[1] * 1e3), x[2]) / us)

    fit = fit_positive(left, np.array([5.0, 200.0, 1.0]))
    small = size <= 2 * 65_536
    whole = Fit(np.append(fit.values, np.median(eager[small])), fit.left)
    return _figure("allreduce", gpu, str(ranks), whole)


def _figure(kernel: str, gpu: str, kind: str, fit: Fit) -> Figure:
    numbers = tuple(float(f"{value:.4g}") for value in fit.values)
    return Figure(kernel, gpu, kind, numbers, fit.mean_error, len(fit.left))


def figures() -> Iterator[Figure]:
    """Every fit that the tables allow."""
    products, reads = read_table("gemm_us.parquet"), read_table("decode_attention_us.parquet")
    rings = read_table("allreduce_us_nvlink.csv.gz")
    for gpu in GPUS:
        tried = [gemm(products, gpu, dtype) for dtype in DTYPES]
        tried += [attention(reads, gpu, dtype) for dtype in DTYPES]
        tried += [allreduce(rings, gpu, ranks) for ranks in (2, 4, 8)]
        yield from (figure for figure in tried if figure is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", help="folder of the tables", default=None)
    data_folder(parser.parse_args().data)
    for f in figures():
        numbers = ", ".join(f"{value:g}" for value in f.numbers)
        print(f"{f.gpu:5}{f.kernel:10}{f.kind:5}({numbers})  # {f.mean_error:.1%}, {f.rows} rows")


if __name__ == "__main__":
    main()
