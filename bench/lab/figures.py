"""The lab's figures for the table of all: how fast it runs, and how near it is to life."""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from bench.figures import Figure
from bench.lab import checks, real_runs, world
from bench.lab.data import data_folder
from bench.lab.runs import RUNS


def figures() -> Iterator[Figure]:
    """Speed; then, where the measured tables are, errors against engines and whole runs."""
    yield from world.figures()
    try:
        data_folder()
    except FileNotFoundError:
        return
    yield from chain(_sizes(), _runs())


def note() -> str:
    """What is to be known of the figures above; empty where nothing is."""
    try:
        data_folder()
    except FileNotFoundError as missing:
        return f"lab: not compared with measured engines: {missing}"
    return ""


def _sizes() -> Iterator[Figure]:
    """Mean TPOT of Llama-3.1-70B fp8 on vLLM: each tensor-parallel size from the others."""
    for gpu in ("H100", "H200"):
        held = checks.held_out_sizes(gpu)[:-1]
        ours, theirs = (
            float(np.average([getattr(row, name) for row in held], weights=[r.rows for r in held]))
            for name in ("mape", "roofline_mape")
        )
        yield Figure(
            f"lab: TPOT of a 70B on {gpu}, tensor-parallel sizes held out", [100 * ours],
            "% mean error", 100 * theirs, "a roofline of 5 terms; 10 % asked for",
            smaller_is_better=True,
        )  # fmt: skip


def _runs() -> Iterator[Figure]:
    """Real vLLM runs: queue time, TTFT and TPOT foretold from the first third."""
    lines = [line for run in RUNS for line in real_runs.lines(run)]
    for percentile, limit in real_runs.LIMITS.items():
        worst = max(abs(line.error) for line in lines if line.percentile == percentile)
        yield Figure(
            f"lab: three real runs, worst error of a wait or pace at p{percentile}",
            [100 * worst], "%", 100 * limit, "what is asked for", smaller_is_better=True,
        )  # fmt: skip
