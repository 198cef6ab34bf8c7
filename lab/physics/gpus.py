"""What the kernels of a GPU cost: our own fits of measured kernels, or a data sheet's bounds.

A100, H100 and H200 (SXM) are fitted from kernel tables of aiconfigurator (Apache-2.0) by
`python -m bench.lab.kernels`, mean error 4 to 15 %. The rest is derived from data sheets by
the shares of peak that the fitted ones reach, and is meant to be calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Gemm:
    """A matrix product of m rows: floor + row m/(m + half), and reading joined with work."""

    floor_us: float
    row_us: float
    row_half_tokens: float
    read_tb_s: float
    work_tflops: float
    bend: float


@dataclass(frozen=True)
class Attention:
    """Decode attention of a layer: floor + batch heads/64 sequence_us + bytes over read."""

    floor_us: float
    sequence_us: float
    read_tb_s: float


@dataclass(frozen=True)
class AllReduce:
    """One all-reduce: floor joined with bytes over bandwidth; the floor outside of a graph."""

    floor_us: float
    bandwidth_gb_s: float
    bend: float
    eager_floor_us: float


@dataclass(frozen=True)
class Gpu:
    """A GPU's kernels by number format ("bf16", "fp8"), and all-reduce by ranks."""

    name: str
    gemm: Mapping[str, Gemm]
    attention: Mapping[str, Attention]
    allreduce: Mapping[int, AllReduce]
    memory_gib: float
    prefill_attention_tflops: float
    """Arithmetic of prefill attention: no table has it; FlashAttention's published range."""


def _gpu(
    name: str,
    memory_gib: float,
    tflops: float,
    gemm: dict[str, Gemm],
    attention: dict[str, Attention],
    allreduce: dict[int, AllReduce],
) -> Gpu:
    tables = (MappingProxyType(gemm), MappingProxyType(attention), MappingProxyType(allreduce))
    return Gpu(name, *tables, memory_gib=memory_gib, prefill_attention_tflops=tflops)


_PCIE: Final = {2: AllReduce(12.0, 14.0, 0.9, 35.0), 4: AllReduce(20.0, 10.0, 0.9, 45.0)}
"""Through host memory, no peer access: of no table; the rate is what a run on two GPUs suggests."""

_GPUS: Final = (
    _gpu(
        "A100",
        80,
        180,
        {"bf16": Gemm(5.948, 58.83, 5108, 1.542, 267.6, 1.568)},
        {"bf16": Attention(15.16, 0.1799, 1.492)},
        {
            2: AllReduce(4.968, 170.6, 0.9802, 43.95),
            4: AllReduce(4.956, 137.3, 0.6166, 45.41),
            8: AllReduce(6.158, 127.0, 0.564, 44.72),
        },
    ),
    _gpu(
        "H100",
        80,
        500,
        {
            "bf16": Gemm(5.054, 1.997, 62.74, 3.003, 804.5, 3.084),
            "fp8": Gemm(5.467, 22.56, 391.1, 3.009, 1182, 2.163),
        },
        {"bf16": Attention(8.993, 0.1712, 3.028), "fp8": Attention(9.91, 0.2533, 2.679)},
        {
            2: AllReduce(4.172, 280.6, 0.858, 21.21),
            4: AllReduce(4.372, 231.1, 0.6465, 24.09),
            8: AllReduce(4.413, 275.1, 0.5294, 23.74),
        },
    ),
    _gpu(
        "H200",
        141,
        500,
        {
            "bf16": Gemm(5.296, 1.017, 17.43, 4.305, 771, 3.028),
            "fp8": Gemm(5.476, 20.86, 332.2, 4.198, 1322, 1.75),
        },
        {"bf16": Attention(9.004, 0.2001, 4.137), "fp8": Attention(10.03, 0.2446, 2.726)},
        {
            2: AllReduce(4.35, 285.0, 0.8881, 21.05),
            4: AllReduce(4.416, 231.9, 0.6699, 21.17),
            8: AllReduce(4.64, 276.7, 0.5634, 21.04),
        },
    ),
    _gpu(
        "B200",
        180,
        1100,
        {
            "bf16": Gemm(5.3, 1.0, 20.0, 7.1, 1550, 3.0),
            "fp8": Gemm(5.5, 15.0, 350.0, 7.0, 2600, 2.0),
        },
        {"bf16": Attention(9.0, 0.19, 6.9), "fp8": Attention(10.0, 0.24, 5.2)},
        {
            2: AllReduce(6.171, 626.3, 0.4962, 20.12),
            4: AllReduce(6.662, 472.0, 0.5032, 21.55),
            8: AllReduce(7.497, 514.5, 0.4793, 20.91),
        },
    ),
    _gpu(
        "RTX-4090",
        24,
        110,
        {"bf16": Gemm(5.0, 2.0, 60.0, 0.92, 145, 3.0), "fp8": Gemm(5.5, 20.0, 350.0, 0.92, 270, 2)},
        {"bf16": Attention(9.0, 0.18, 0.9), "fp8": Attention(10.0, 0.25, 0.85)},
        _PCIE,
    ),
    _gpu(
        "RTX-PRO-6000",
        96,
        230,
        {"bf16": Gemm(5.0, 2.0, 60.0, 1.6, 350, 3.0), "fp8": Gemm(5.5, 20.0, 350.0, 1.6, 640, 2.0)},
        {"bf16": Attention(9.0, 0.18, 1.55), "fp8": Attention(10.0, 0.25, 1.4)},
        _PCIE,
    ),
)

GPUS: Final[Mapping[str, Gpu]] = MappingProxyType({gpu.name: gpu for gpu in _GPUS})
"""Every GPU the lab knows, by name."""
