"""Step times of an engine, of measured kernels: what a step costs, and what makes it cost more.

`StepModel.of(Layout("Llama-3.1-70B", "H200", 4)).coef` is a flat array; the compiled
functions of `step` read it: `decode_step_ns(coef, batch, kv_tokens, prefill_tokens,
prefill_pairs)`, `jittered_ns`, `prefill_ns`, `accepted_tokens`. Knobs are the array's first
entries (`coef.KNOB_INDEX`), so a fault is one write at its cause.
"""

from tailburn.lab.physics.calibrate import Calibration, Observed, calibrate, predict_ns
from tailburn.lab.physics.coef import KNOB_INDEX, NEUTRAL
from tailburn.lab.physics.engines import ENGINES, engine_scales
from tailburn.lab.physics.gpus import GPUS, Gpu
from tailburn.lab.physics.layout import Jitter, Layout, Speculation, StepModel
from tailburn.lab.physics.models import MODELS, Model
from tailburn.lab.physics.scales import Scales
from tailburn.lab.physics.step import (
    accepted_tokens,
    chunk_pairs,
    decode_step_ns,
    jittered_ns,
    prefill_ns,
    step_parts_ns,
    tokens_a_step,
)

__all__ = [
    "ENGINES",
    "GPUS",
    "KNOB_INDEX",
    "MODELS",
    "NEUTRAL",
    "Calibration",
    "Gpu",
    "Jitter",
    "Layout",
    "Model",
    "Observed",
    "Scales",
    "Speculation",
    "StepModel",
    "accepted_tokens",
    "calibrate",
    "chunk_pairs",
    "decode_step_ns",
    "engine_scales",
    "jittered_ns",
    "predict_ns",
    "prefill_ns",
    "step_parts_ns",
    "tokens_a_step",
]
