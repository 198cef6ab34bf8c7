"""Real vLLM runs as observed steps: what ran each few seconds, and how long a step took.

Of LLMServingSim's validation runs (MIT): 300 requests at 10 req/s on desktop GPUs, a token
budget of 2,048. The engine's own log tells running sequences and tokens made a second, so
running over tokens is the step; contexts follow from the requests' own instants.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.checks import NEUTRAL
from bench.lab.data import Table, read_table
from tailburn.lab.physics.calibrate import Calibration, Observed, calibrate, predict_ns
from tailburn.lab.physics.layout import Layout

F64 = NDArray[np.float64]

RUNS: Final = {
    "rtx4090_llama8b": Layout("Llama-3.1-8B", "RTX-4090", weights="bf16", scales=NEUTRAL),
    "rtxpro6000_llama8b": Layout("Llama-3.1-8B", "RTX-PRO-6000", weights="bf16", scales=NEUTRAL),
    "rtxpro6000_qwen32b_tp2": Layout(
        "Qwen3-32B", "RTX-PRO-6000", 2, weights="bf16", scales=NEUTRAL
    ),
}
"""What ran on what, by the name in the files."""

TOKEN_BUDGET: Final = 2_048
WINDOW_S: Final = 5


@dataclass(frozen=True)
class Windows:
    """Observed steps, and the second of the run at which each window ends."""

    observed: Observed
    end_s: F64


def windows(run: str) -> Windows:
    """The run in windows of `WINDOW_S`; those in which nothing was decoded are left out."""
    log = read_table(f"vllmrun_{run}_timeseries.csv.gz")
    requests = read_table(f"vllmrun_{run}_requests.csv.gz")
    whole = len(log["t"]) // WINDOW_S * WINDOW_S
    ends = log["t"][:whole].reshape(-1, WINDOW_S)[:, -1]
    running, made, prompts = (
        log[name][:whole].reshape(-1, WINDOW_S).sum(axis=1)
        for name in ("running", "gen_throughput", "prompt_throughput")
    )
    kept = (made > 0) & (running > 0)
    ends, running, made, prompts = ends[kept], running[kept], made[kept], prompts[kept]
    batch = running / WINDOW_S
    steps = made / batch
    prompt = float(np.mean(requests["input_toks"]))
    chunk = np.minimum(TOKEN_BUDGET - batch, np.maximum(prompts / steps, prompt))
    share = np.minimum(prompts / (steps * chunk), 1.0)
    context = np.array([_mean_context(requests, end) for end in ends])
    step_ns = WINDOW_S / steps * 1e9
    seen = Observed(batch, batch * context, share, chunk, chunk * prompt / 2, step_ns)
    return Windows(seen, ends)


def _mean_context(requests: Table, end_s: float) -> float:
    """Tokens that a decoding sequence held on average in the window that ends there."""
    zero = requests["queued_ts"].min()
    first, last = requests["first_token_ts"] - zero, requests["last_token_ts"] - zero
    start = end_s - WINDOW_S
    overlap = np.clip(np.minimum(last, end_s) - np.maximum(first, start), 0, None)
    if not overlap.any():
        return float(np.mean(requests["input_toks"]))
    middle = np.clip((start + end_s) / 2, first, last)
    rate = (requests["output_toks"] - 1) / np.maximum(last - first, 1e-9)
    held = requests["input_toks"] + rate * (middle - first)
    return float(np.sum(overlap * held) / np.sum(overlap))


@dataclass(frozen=True)
class Replayed:
    """A run whose first third taught the scales: what they say of the rest."""

    run: str
    calibration: Calibration
    errors: F64

    @property
    def mape(self) -> float:
        """Mean absolute relative error of a step over the windows not seen."""
        return float(np.mean(np.abs(self.errors)))

    @property
    def bias(self) -> float:
        """Relative error of the mean step over the windows not seen."""
        return float(np.mean(self.errors))


def replayed(run: str) -> Replayed:
    """Calibrate on the first third of the run's wall time, predict each later window."""
    seen, layout = windows(run), RUNS[run]
    early = seen.end_s <= seen.end_s.max() / 3
    found = calibrate([(layout, seen.observed.where(early))])
    rest = seen.observed.where(~early)
    coef = replace(layout, scales=found.scales).coefficients()
    return Replayed(run, found, np.asarray(predict_ns(coef, rest) / rest.step_ns - 1))
