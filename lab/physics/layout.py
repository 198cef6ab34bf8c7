"""A model on GPUs under an engine, compiled into the flat array that `step` reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.physics import coef as c
from tailburn.lab.physics.engines import engine_scales
from tailburn.lab.physics.gpus import GPUS, AllReduce, Gpu
from tailburn.lab.physics.models import BYTES, MODELS, Model
from tailburn.lab.physics.scales import Scales, apply_scales
from tailburn.lab.physics.step import decode_step_ns

F64 = NDArray[np.float64]
T = TypeVar("T")

GPUS_A_HOST: Final = 8
PRODUCTS_A_LAYER: Final = 4
_BETWEEN_HOSTS: Final = AllReduce(28.0, 38.0, 0.7, 60.0)
"""All-reduce between hosts: one NDR port a GPU, ~40 GB/s effective by llm-d; floors assumed."""
_FABRIC_US: Final = 15.0
_FABRIC_GB_S: Final = 40.0
_LINK_US: Final = 8.0
_NVLINK_GB_S: Final = 300.0


@dataclass(frozen=True)
class Jitter:
    """What makes one step differ from its like.

    Repeats of one prompt and batch on A100 and H100 (Splitwise, MIT) spread by 1.1 %, runs
    of a server by somewhat more. How often a healthy host holds a step up is assumed.
    """

    sigma: float = 0.015
    rank_wait: float = 0.0
    stall_chance: float = 1e-4
    stall_mean_ms: float = 8.0


@dataclass(frozen=True)
class Speculation:
    """Tokens drafted a step, the chance to accept each, and one draft's cost."""

    tokens: int = 0
    acceptance: float = 0.7
    draft_ms: float = 0.6


@dataclass(frozen=True)
class Layout:
    """Which model runs where: names of `MODELS` and `GPUS`, ranks, stages, number formats.

    `expert_ranks` above 1 spreads whole experts over that many GPUs, which then exchange
    tokens (all-to-all); at 1 each expert is cut over the tensor-parallel ranks. Without
    `scales` those of `engine` are taken (`engines.engine_scales`).
    """

    model: str
    gpu: str
    tensor_ranks: int = 1
    stages: int = 1
    expert_ranks: int = 1
    weights: str = "fp8"
    kv: str = "bf16"
    engine: str = "vllm"
    scales: Scales | None = None
    jitter: Jitter = field(default_factory=Jitter)
    speculation: Speculation = field(default_factory=Speculation)

    def coefficients(self) -> F64:
        """The array that `step` reads, knobs neutral.

        Raises ValueError that names what is unknown and what is accepted.
        """
        model, gpu = known(MODELS, "model", self.model), known(GPUS, "GPU", self.gpu)
        _check(self, model, gpu)
        coef = np.zeros(c.SIZE)
        for name, value in c.NEUTRAL.items():
            coef[c.KNOB_INDEX[name]] = value
        coef[c.LAYERS] = -(-model.layers // self.stages)
        coef[c.STAGES], coef[c.RANKS] = self.stages, self.tensor_ranks
        _products(coef, self, model, gpu)
        _attention(coef, self, model, gpu)
        _collectives(coef, self, model, gpu)
        _rest(coef, self)
        return apply_scales(coef, self.effective_scales)

    @property
    def effective_scales(self) -> Scales:
        """The scales given, or those of the engine."""
        return self.scales or engine_scales(self.engine, self.model, self.weights)


@dataclass(frozen=True)
class StepModel:
    """Coefficients ready for compiled code (`coef`), and what they were made of.

    `coef` is a plain contiguous float64 array: copy it for each replica, and write knobs
    into the copy.
    """

    layout: Layout
    coef: F64

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """The step model of a layout, with neutral knobs."""
        return cls(layout, layout.coefficients())

    def with_knobs(self, **knobs: float) -> Self:
        """A copy with knobs set, e.g. `with_knobs(hbm_ratio=0.8)`; ValueError names the wrong."""
        coef = self.coef.copy()
        for name, value in knobs.items():
            coef[known(c.KNOB_INDEX, "knob", name)] = value
        return replace(self, coef=coef)

    def step_ns(
        self,
        batch: int,
        kv_tokens: float,
        prefill_tokens: int = 0,
        prefill_pairs: float = 0.0,
    ) -> float:
        """The mean length of one step, as `step.decode_step_ns` has it."""
        return float(
            decode_step_ns(self.coef, batch, float(kv_tokens), prefill_tokens, float(prefill_pairs))
        )


def known(names: Mapping[str, T], what: str, name: str) -> T:
    """The entry of that name; ValueError with the nearest names otherwise."""
    if name in names:
        return names[name]
    near = get_close_matches(name, names, n=3, cutoff=0.3) or sorted(names)
    raise ValueError(f"unknown {what} {name!r}: did you mean {', '.join(near)}?")


def _check(layout: Layout, model: Model, gpu: Gpu) -> None:
    for what, number in (("tensor_ranks", layout.tensor_ranks), ("stages", layout.stages)):
        if number < 1:
            raise ValueError(f"{what} must be >= 1, got {number}")
    if layout.weights not in gpu.gemm:
        raise ValueError(f"{gpu.name} has no {layout.weights} products, only {list(gpu.gemm)}")
    if layout.kv not in BYTES:
        raise ValueError(f"kv format {layout.kv!r} is unknown, accepted are {list(BYTES)}")
    ranks = layout.tensor_ranks
    if ranks > 1 and ranks <= GPUS_A_HOST and ranks not in gpu.allreduce:
        raise ValueError(f"{gpu.name} has all-reduce on {list(gpu.allreduce)} ranks, not {ranks}")
    if model.heads % ranks:
        raise ValueError(f"{model.heads} heads of {model.name} do not split over {ranks} ranks")
    if layout.expert_ranks > 1 and not model.experts:
        raise ValueError(f"{model.name} has no experts to spread over {layout.expert_ranks} ranks")


def _products(coef: F64, layout: Layout, model: Model, gpu: Gpu) -> None:
    gemm, size = gpu.gemm[layout.weights], BYTES[layout.weights]
    ranks = layout.tensor_ranks
    read = 1e9 / (gemm.read_tb_s * 1e12)  # ns a byte
    work = 2e9 / (gemm.work_tflops * 1e12)  # ns a token and weight
    weights = model.layer_weights / ranks
    coef[c.GEMM_FLOOR] = PRODUCTS_A_LAYER * gemm.floor_us * 1e3
    coef[c.GEMM_ROW] = PRODUCTS_A_LAYER * gemm.row_us * 1e3
    coef[c.GEMM_ROW_HALF] = gemm.row_half_tokens
    coef[c.GEMM_READ], coef[c.GEMM_TOKEN] = weights * size * read, weights * work
    coef[c.GEMM_BEND] = gemm.bend
    head = gpu.gemm["bf16"]  # engines leave the head unquantised
    vocabulary = model.vocabulary * model.hidden / ranks
    coef[c.HEAD_READ] = vocabulary * 2 / head.read_tb_s / 1e3
    coef[c.HEAD_TOKEN] = vocabulary * 2 / head.work_tflops / 1e3
    traffic = 12 * model.hidden * 2 + 3 * (model.ffn + model.expert_ffn) * 2 / ranks
    coef[c.ELEMENTWISE_TOKEN] = traffic * read
    if model.experts:
        share = max(ranks, layout.expert_ranks)
        coef[c.EXPERTS], coef[c.EXPERTS_ACTIVE] = model.experts, model.experts_active
        coef[c.EXPERT_READ] = model.experts * model.expert_weights / share * size * read
        coef[c.EXPERT_TOKEN] = model.experts_active * model.expert_weights / share * work


def _attention(coef: F64, layout: Layout, model: Model, gpu: Gpu) -> None:
    attention = gpu.attention[layout.kv if layout.kv in gpu.attention else "bf16"]
    ranks = layout.tensor_ranks
    heads, kv_heads = model.heads / ranks, max(model.kv_heads / ranks, 1.0)
    read = 2 * kv_heads * model.head_dim * BYTES[layout.kv]
    coef[c.ATTENTION_FLOOR] = attention.floor_us * 1e3
    coef[c.ATTENTION_SEQUENCE] = attention.sequence_us * 1e3 * heads / 64
    coef[c.ATTENTION_TOKEN] = read / attention.read_tb_s / 1e3
    work = 4 * heads * model.head_dim
    coef[c.ATTENTION_PAIR] = work / gpu.prefill_attention_tflops / 1e3


def _collectives(coef: F64, layout: Layout, model: Model, gpu: Gpu) -> None:
    ranks = layout.tensor_ranks
    if ranks > 1:
        ring = gpu.allreduce[ranks] if ranks <= GPUS_A_HOST else _BETWEEN_HOSTS
        coef[c.ALLREDUCES] = 2.0
        coef[c.ALLREDUCE_FLOOR] = ring.floor_us * 1e3
        coef[c.ALLREDUCE_TOKEN] = model.hidden * 2 / ring.bandwidth_gb_s
        coef[c.ALLREDUCE_BEND] = ring.bend
        coef[c.ALLREDUCE_EAGER_FLOOR] = ring.eager_floor_us * 1e3
    else:
        coef[c.ALLREDUCE_BEND] = 1.0
    if layout.expert_ranks > 1:
        inside = layout.expert_ranks <= GPUS_A_HOST
        rate = _NVLINK_GB_S if inside else _FABRIC_GB_S
        away = (layout.expert_ranks - 1) / layout.expert_ranks
        # Dispatch in fp8, combine in bf16, of each rank's own share of the tokens.
        sent = 1.5 * model.hidden * model.experts_active * away / layout.expert_ranks
        coef[c.ALLTOALLS] = 2.0
        coef[c.ALLTOALL_FLOOR] = (_LINK_US if inside else _FABRIC_US) * 1e3
        coef[c.ALLTOALL_TOKEN] = sent / rate
    if layout.stages > 1:
        between = layout.stages * ranks > GPUS_A_HOST
        coef[c.STAGE_LINK_FLOOR] = (_FABRIC_US if between else _LINK_US) * 1e3
        coef[c.STAGE_LINK_TOKEN] = model.hidden * 2 / (_FABRIC_GB_S if between else _NVLINK_GB_S)


def _rest(coef: F64, layout: Layout) -> None:
    drafts, jitter = layout.speculation, layout.jitter
    coef[c.DRAFT_TOKENS], coef[c.DRAFT_STEP] = drafts.tokens, drafts.draft_ms * 1e6
    coef[c.SPEC_ACCEPTANCE] = drafts.acceptance if drafts.tokens else 0.0
    coef[c.JITTER_SIGMA], coef[c.RANK_WAIT] = jitter.sigma, jitter.rank_wait
    coef[c.STALL_CHANCE], coef[c.STALL_MEAN] = jitter.stall_chance, jitter.stall_mean_ms * 1e6
