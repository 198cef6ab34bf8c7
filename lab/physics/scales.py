"""The few free coefficients of an engine: how far it is from its kernels measured alone."""

from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.physics import coef as c

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """Factors on the kernels' times (1: as measured alone), and the host's share of a step.

    `prefill` is on arithmetic: it acts on prompts and on batches past the memory bound.
    """

    gemm: float = 1.0
    attention: float = 1.0
    allreduce: float = 1.0
    prefill: float = 1.0
    host_step_us: float = 2_000.0
    host_sequence_us: float = 5.0
    host_chunk_us: float = 2_000.0
    host_launch_us: float = 0.0

    def __post_init__(self) -> None:
        wrong = {k: v for k, v in vars(self).items() if not (np.isfinite(v) and v >= 0)}
        if wrong:
            raise ValueError(f"a scale must be finite and >= 0, got {wrong}")

    def array(self) -> F64:
        """The numbers in the order of the fields."""
        return np.array(astuple(self), dtype=np.float64)

    @classmethod
    def of(cls, numbers: F64) -> "Scales":
        """The inverse of `array`."""
        return cls(*(float(number) for number in numbers))


_SCALED: Final = MappingProxyType(
    {
        "gemm": (c.GEMM_FLOOR, c.GEMM_ROW, c.GEMM_READ, c.HEAD_READ, c.EXPERT_READ),
        "attention": (c.ATTENTION_FLOOR, c.ATTENTION_SEQUENCE, c.ATTENTION_TOKEN),
        "allreduce": (c.ALLREDUCE_FLOOR, c.ALLREDUCE_TOKEN, c.ALLREDUCE_EAGER_FLOOR),
        "prefill": (
            c.GEMM_TOKEN,
            c.HEAD_TOKEN,
            c.EXPERT_TOKEN,
            c.ATTENTION_PAIR,
            c.ELEMENTWISE_TOKEN,
        ),
    }
)


def apply_scales(coef: F64, scales: Scales) -> F64:
    """A copy of coefficients at scale 1 with the kernels scaled and the host filled in."""
    scaled = coef.copy()
    for name, places in _SCALED.items():
        scaled[list(places)] *= getattr(scales, name)
    scaled[c.HOST_STEP] = scales.host_step_us * 1e3
    scaled[c.HOST_SEQUENCE] = scales.host_sequence_us * 1e3
    scaled[c.HOST_CHUNK] = scales.host_chunk_us * 1e3
    scaled[c.HOST_LAUNCH] = scales.host_launch_us * 1e3
    return scaled
