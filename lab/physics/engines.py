"""How far served engines are from their kernels measured alone: our fits of measured TPOT.

Each set comes from rows of aiconfigurator's silicon sample (Apache-2.0) on H100 and H200
by `python -m bench.lab.physics --engines`; the remark is the mean error it leaves. They do
not carry over between models: what is not listed takes its engine's general set, a rounded
middle of those fitted.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailburn.lab.physics.scales import Scales

ENGINES: Final = ("vllm", "sglang", "trtllm")

_GENERAL: Final = MappingProxyType(
    {
        "vllm": Scales(0.94, 1.05, 0.9, 0.9, 2_200, 8, 1_200),
        "sglang": Scales(0.9, 1.0, 0.6, 0.7, 1_600, 7.5, 800),
        "trtllm": Scales(0.97, 0.9, 1.0, 0.8, 720, 11, 1_000),
    }
)

CALIBRATED: Final[Mapping[tuple[str, str, str], Scales]] = MappingProxyType(
    {
        # 3.2 % of 100 rows, TP 1 to 8
        ("vllm", "Llama-3.1-70B", "fp8"): Scales(0.94, 1.01, 0.974, 0.834, 2_400, 5.42, 1_030),
        # 2.2 % of 87 rows, TP 2 to 8
        ("vllm", "Qwen3-32B", "bf16"): Scales(0.932, 1.2, 0.691, 0.993, 1_990, 46, 2_530),
        # 2.9 % of 67 rows, TP 2 to 8
        ("sglang", "Qwen3-32B", "bf16"): Scales(0.869, 1.65, 0.548, 0.483, 1_420, 12.8, 396),
        # 4.6 % of 68 rows, TP 1 to 8
        ("trtllm", "Llama-3.1-70B", "fp8"): Scales(0.96, 0.431, 1.22, 0.768, 691, 14.2, 818),
        # 6.1 % of 177 rows, TP 1 to 8
        ("trtllm", "Llama-3.1-8B", "bf16"): Scales(0.986, 0.967, 0.607, 0.825, 729, 11, 5_580),
        # 2.5 % of 126 rows, TP 4 and 8
        ("trtllm", "Qwen3-235B-A22B", "fp8"): Scales(0.485, 1.27, 1.97, 1.86, 4_970, 33.5, 518),
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
