"""The lab's step times against measured engines; each check is a number with its baseline."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.lab import roofline
from bench.lab.data import only, read_table
from bench.lab.silicon import Sample, sample
from tailburn.lab.physics.calibrate import Observed, calibrate, predict_ns
from tailburn.lab.physics.layout import Layout, StepModel
from tailburn.lab.physics.models import MODELS
from tailburn.lab.physics.scales import Scales
from tailburn.lab.physics.step import prefill_ns

F64 = NDArray[np.float64]

MODEL = "Llama-3.1-70B"
MODEL_PATH = "meta-llama/Llama-3.1-70B"
NEUTRAL = Scales(1.0, 1.0, 1.0, 1.0, 1_000.0, 5.0, 1_000.0)
"""Kernels as measured alone and a host of 1 ms: no start that has seen the rows."""


@dataclass(frozen=True)
class HeldOut:
    """Mean absolute relative error on rows the fit has not seen, ours and the roofline's."""

    gpu: str
    left_out: str
    rows: int
    mape: float
    roofline_mape: float


def layout(gpu: str, ranks: int, scales: Scales = NEUTRAL) -> Layout:
    """The 70B on so many GPUs, in fp8 with keys and values in bf16, as vLLM ran it."""
    return Layout(MODEL, gpu, ranks, scales=scales)


def fitted(gpu: str, rows: Sample, sizes: list[int]) -> Scales:
    """The scales that the rows of these tensor-parallel sizes ask for."""
    return calibrate([(layout(gpu, ranks), rows.of_ranks(ranks)) for ranks in sizes]).scales


def errors(gpu: str, ranks: int, scales: Scales, seen: Observed) -> F64:
    """Relative error of each row."""
    predicted = predict_ns(layout(gpu, ranks, scales).coefficients(), seen)
    return np.asarray(predicted / seen.step_ns - 1.0)


def held_out_sizes(gpu: str) -> list[HeldOut]:
    """Each tensor-parallel size predicted from the others, and all at once for comparison."""
    rows = sample(MODEL_PATH, gpu)
    sizes = rows.sizes()
    found = []
    for ranks in [*sizes, 0]:
        seen = [size for size in sizes if size != ranks]
        asked = [ranks] if ranks else sizes
        scales = fitted(gpu, rows, seen)
        off = np.concatenate([errors(gpu, n, scales, rows.of_ranks(n)) for n in asked])
        base = _roofline_errors(gpu, rows, seen, asked)
        what = f"TP{ranks}" if ranks else "none"
        found.append(HeldOut(gpu, what, len(off), _mape(off), _mape(base)))
    return found


def other_gpu(known: str, asked: str) -> HeldOut:
    """The scales of one GPU on the other's rows."""
    seen, rows = sample(MODEL_PATH, known), sample(MODEL_PATH, asked)
    scales = fitted(known, seen, seen.sizes())
    off = [errors(asked, n, scales, rows.of_ranks(n)) for n in rows.sizes()]
    terms, ms = _roofline(known, seen, seen.sizes())
    factors = roofline.fit(terms, ms)
    terms, ms = _roofline(asked, rows, rows.sizes())
    base = terms @ factors / ms - 1
    return HeldOut(asked, f"all ({known} seen)", len(base), _mape(np.concatenate(off)), _mape(base))


def _roofline(
    gpu: str, rows: Sample, sizes: list[int], fault: roofline.Fault = roofline.NONE
) -> tuple[F64, F64]:
    model = MODELS[MODEL]
    terms = [roofline.terms_ms(model, gpu, n, rows.of_ranks(n), fault) for n in sizes]
    return np.concatenate(terms), np.concatenate([rows.of_ranks(n).step_ns for n in sizes]) / 1e6


def _roofline_errors(gpu: str, rows: Sample, seen: list[int], asked: list[int]) -> F64:
    factors = roofline.fit(*_roofline(gpu, rows, seen))
    terms, ms = _roofline(gpu, rows, asked)
    return np.asarray(terms @ factors / ms - 1)


def _mape(off: F64) -> float:
    return float(np.mean(np.abs(off)))


@dataclass(frozen=True)
class Sensitivity:
    """What a fault does to TPOT and to a prompt's time, as factors on the healthy ones.

    TPOT over all shapes and batches measured; `tpot_32` at batch 32 and 1k/1k.
    """

    fault: str
    gpu: str
    ranks: int
    tpot_low: float
    tpot_high: float
    tpot_32: float
    roofline_32: float
    prefill: float


FAULTS = {
    "HBM -20 %": ({"hbm_ratio": 0.8}, roofline.Fault(hbm=0.8)),
    "SM clock -30 %": ({"sm_clock_ratio": 0.7}, roofline.Fault(clock=0.7)),
    "all-reduce x3": ({"allreduce_factor": 3.0}, roofline.Fault(allreduce=3.0)),
    "all-reduce x10": ({"allreduce_factor": 10.0}, roofline.Fault(allreduce=10.0)),
    "host x2": ({"host_factor": 2.0}, roofline.Fault(host=2.0)),
}


def sensitivities(gpu: str) -> list[Sensitivity]:
    """Each fault at each tensor-parallel size, by scales fitted to all rows of the GPU."""
    rows = sample(MODEL_PATH, gpu)
    sizes = rows.sizes()
    scales = fitted(gpu, rows, sizes)
    factors = roofline.fit(*_roofline(gpu, rows, sizes))
    found = []
    for name, (knobs, fault) in FAULTS.items():
        for ranks in sizes:
            seen = rows.of_ranks(ranks)
            well = StepModel.of(layout(gpu, ranks, scales))
            ill = well.with_knobs(**knobs)
            ratio = predict_ns(ill.coef, seen) / predict_ns(well.coef, seen)
            at = int(np.flatnonzero((seen.batch == 32) & (seen.kv_tokens == 32 * 1_536))[0])
            base = _roofline(gpu, rows, [ranks], fault)[0] @ factors
            base /= _roofline(gpu, rows, [ranks])[0] @ factors
            prompt = prefill_ns(ill.coef, 2_048, 0, 8_192) / prefill_ns(well.coef, 2_048, 0, 8_192)
            low, high = float(ratio.min()), float(ratio.max())
            at_32 = (float(ratio[at]), float(base[at]))
            found.append(Sensitivity(name, gpu, ranks, low, high, *at_32, float(prompt)))
    return found


@dataclass(frozen=True)
class Check:
    """One further outsider: how far off we are on rows seen, and on rows held out."""

    what: str
    rows: int
    seen: float
    held_out: float
    held_out_is: str


def splitwise(gpu: str) -> list[Check]:
    """Llama-2-70B in fp16 on an engine of 2023 that launches its kernels one by one.

    Token and prompt times; TP4 held out. Two sizes whose prompts did not fit are left out.
    """
    start = replace(NEUTRAL, host_launch_us=20_000.0)
    layouts = {n: Layout("Llama-2-70B", gpu, n, weights="bf16", scales=start) for n in (2, 4, 8)}
    rows = {n: _splitwise_rows(gpu, n) for n in layouts}
    whole = calibrate([(layouts[n], seen) for n in layouts for seen in rows[n]])
    part = calibrate([(layouts[n], seen) for n in (2, 8) for seen in rows[n]])
    coef = {n: replace(layouts[n], scales=whole.scales).coefficients() for n in layouts}
    held = replace(layouts[4], scales=part.scales).coefficients()
    checks = []
    for kind, name in enumerate(("token time", "prompt time")):
        seen = [predict_ns(coef[n], rows[n][kind]) / rows[n][kind].step_ns - 1 for n in layouts]
        asked = rows[4][kind]
        left = _mape(predict_ns(held, asked) / asked.step_ns - 1)
        off = np.concatenate(seen)
        what = f"Splitwise {gpu}, Llama-2-70B fp16, {name}"
        checks.append(Check(what, len(off), _mape(off), left, "TP4 from TP2 and TP8"))
    return checks


def _splitwise_rows(gpu: str, ranks: int) -> tuple[Observed, Observed]:
    table = read_table("splitwise_perf_llama2-70b_bloom.csv.gz")
    held = (table["model"] == "llama2-70b") & (table["tensor_parallel"] == ranks)
    held &= table["hardware"] == f"{gpu.lower()}-80gb"
    if ranks == 2:
        held &= table["batch_size"] < 64  # its prompt time is a tenth of batch 32's
    rows = only(table, held)
    batch, prompt = rows["batch_size"], rows["prompt_size"]
    none, all_of = np.zeros(len(batch)), np.ones(len(batch))
    context = batch * (prompt + rows["token_size"] / 2)
    tokens = Observed(batch, context, none, none, none, rows["token_time"] * 1e6)
    pairs = batch * prompt**2 / 2
    prompts = Observed(none, none, all_of, batch * prompt, pairs, rows["prompt_time"] * 1e6)
    return tokens, prompts


def repeat_spread() -> float:
    """Median spread (standard deviation over mean) of one prompt's time when repeated."""
    table = read_table("splitwise_perf_llama2-70b_bloom.csv.gz")
    names = ("model", "hardware", "prompt_size", "batch_size", "token_size", "tensor_parallel")
    _, which = np.unique(
        np.stack([table[name].astype(str) for name in names]), axis=1, return_inverse=True
    )
    repeats = [table["prompt_time"][which == group] for group in range(int(which.max()) + 1)]
    return float(np.median([r.std(ddof=1) / r.mean() for r in repeats if len(r) >= 4]))


def dynamo() -> list[Check]:
    """ITL and TTFT of an 8B in fp8 on one H200, every other row held out."""
    decode = read_table("dynamo_h200_tp1_decode.csv")
    prompts = read_table("dynamo_h200_tp1_prefill.csv")
    kv, none = decode["kv_tokens"], np.zeros(len(decode["kv_tokens"]))
    batch = np.round(kv / decode["context_length"])
    steps = Observed(batch, kv, none, none, none, decode["itl_ms"] * 1e6)
    isl, zero = prompts["isl"], np.zeros(len(prompts["isl"]))
    ttft = Observed(zero, zero, zero + 1, isl, isl**2 / 2, prompts["ttft_ms"] * 1e6)
    place = Layout("Llama-3.1-8B", "H200", scales=NEUTRAL)
    whole = calibrate([(place, steps), (place, ttft)])
    halves = [seen.where(np.arange(len(seen)) % 2 == 0) for seen in (steps, ttft)]
    part = calibrate([(place, half) for half in halves])
    coef = replace(place, scales=part.scales).coefficients()
    checks = []
    for name, seen, off in (
        ("ITL", steps, whole.errors[: len(steps)]),
        ("TTFT", ttft, whole.errors[len(steps) :]),
    ):
        asked = seen.where(np.arange(len(seen)) % 2 == 1)
        left = _mape(predict_ns(coef, asked) / asked.step_ns - 1)
        what = f"Dynamo profile, 8B fp8 on one H200, {name}"
        checks.append(Check(what, len(seen), _mape(off), left, "every other row"))
    return checks
