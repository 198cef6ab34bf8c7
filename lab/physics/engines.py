"""How far served engines are from their kernels measured alone: our fits of measured TPOT.

Each set comes from rows of aiconfigurator's silicon sample (Apache-2.0) on H100 and H200
by `python -m bench.lab.physics --engines`; the remark is the mean error it leaves. They do
not carry over between models: what is not listed takes its engine's general set.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailburn.lab.physics.scales import Scales

ENGINES: Final = ("vllm", "sglang", "trtllm")

_GENERAL: Final = MappingProxyType(
    {
        "vllm": Scales(0.93, 1.0, 0.9, 0.85, 2_300, 5, 2_000),
        "sglang": Scales(0.9, 1.0, 0.6, 0.7, 1_700, 7, 1_200),
        "trtllm": Scales(0.97, 0.9, 1.0, 0.8, 850, 11, 1_800),
    }
)

CALIBRATED: Final[Mapping[tuple[str, str, str], Scales]] = MappingProxyType(
    {
        ("vllm", "Llama-3.1-70B", "fp8"): Scales(
            0.94,
            1.02,
            0.97,
            0.83,
            2_408,
            5.0,
            2_024,  # 3.2 % of 100 rows, TP 1 to 8
        ),
        ("vllm", "Qwen3-32B", "bf16"): Scales(
            0.90,
            1.29,
            0.61,
            1.00,
            2_199,
            41.5,
            3_297,  # 2.2 % of 87 rows, TP 2 to 8
        ),
        ("sglang", "Qwen3-32B", "bf16"): Scales(
            0.81,
            1.87,
            0.47,
            0.46,
            1_736,
            6.8,
            1_241,  # 2.9 % of 67 rows, TP 2 to 8
        ),
        ("trtllm", "Llama-3.1-70B", "fp8"): Scales(
            0.95,
            0.42,
            1.21,
            0.78,
            833,
            11.5,
            1_833,  # 4.6 % of 68 rows, TP 1 to 8
        ),
        ("trtllm", "Llama-3.1-8B", "bf16"): Scales(
            0.97,
            0.98,
            0.56,
            0.83,
            790,
            10.4,
            5_796,  # 6.1 % of 177 rows, TP 1 to 8
        ),
        ("trtllm", "Qwen3-235B-A22B", "fp8"): Scales(
            0.49,
            2.73,
            2.22,
            1.38,
            3_425,
            7.3,
            1_329,  # 2.7 % of 126 rows, TP 4 and 8
        ),
    }
)
"""Scales by engine, model and format of the weights."""


def engine_scales(engine: str, model: str, weights: str) -> Scales:
    """The set fitted to that engine, model and format, or the engine's general one.

    Raises ValueError for an engine that is none of `ENGINES`.
    """
    if engine not in _GENERAL:
        raise ValueError(f"unknown engine {engine!r}, accepted are {', '.join(ENGINES)}")
    return CALIBRATED.get((engine, model, weights), _GENERAL[engine])
