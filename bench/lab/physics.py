"""How far the lab's step times are from measured engines, beside a plain roofline.

    python -m bench.lab.physics [--data FOLDER] [--engines]

Without the folder of measured tables there is nothing to compare with: exit code 2.
"""

import argparse
import sys

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from bench.lab import checks, runs
from bench.lab.data import data_folder
from bench.lab.silicon import sample
from tailburn.lab.physics.calibrate import Calibration, calibrate
from tailburn.lab.physics.layout import Layout

_WIDTH = 160  # where the output is no terminal

ENGINE_SETS = (
    ("vllm", "Llama-3.1-70B", "meta-llama/Llama-3.1-70B", "fp8", "fp8"),
    ("vllm", "Qwen3-32B", "Qwen/Qwen3-32B", "", "bf16"),
    ("sglang", "Qwen3-32B", "Qwen/Qwen3-32B", "", "bf16"),
    ("trtllm", "Llama-3.1-70B", "meta-llama/Llama-3.1-70B", "fp8", "fp8"),
    ("trtllm", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "", "bf16"),
    ("trtllm", "Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B-FP8", "fp8", "fp8"),
)
"""Engine, model, its name in the sample, the sample's precision, and ours of the weights."""


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def held_out_table() -> Table:
    """Mean TPOT of the 70B: each tensor-parallel size from the others, each GPU from the other."""
    title = "Mean TPOT, Llama-3.1-70B fp8, vLLM: mean absolute relative error"
    table = _table(title, "GPU", "held out", "rows", "lab", "roofline (5 terms)")
    rows = [row for gpu in ("H200", "H100") for row in checks.held_out_sizes(gpu)]
    rows += [checks.other_gpu("H200", "H100"), checks.other_gpu("H100", "H200")]
    for row in rows:
        errors = (f"{row.mape:.1%}", f"{row.roofline_mape:.1%}")
        table.add_row(row.gpu, row.left_out, str(row.rows), *errors)
    return table


def sensitivity_table() -> Table:
    """What each fault does to TPOT and to a prompt of 2,048 tokens."""
    title = "Factors on TPOT (all shapes; batch 32, 1k/1k) and on a 2,048-token prompt"
    columns = ("fault", "GPU", "TP", "TPOT min..max", "at batch 32", "roofline there", "prompt")
    table = _table(title, *columns)
    for row in [row for gpu in ("H200", "H100") for row in checks.sensitivities(gpu)]:
        span = f"{row.tpot_low:.2f}..{row.tpot_high:.2f}"
        figures = (f"{row.tpot_32:.2f}", f"{row.roofline_32:.2f}", f"{row.prefill:.2f}")
        table.add_row(row.fault, row.gpu, str(row.ranks), span, *figures)
    return table


def further_table() -> Table:
    """Other engines, GPUs and years."""
    columns = ("what", "rows", "error, seen", "error, held out", "held out is")
    table = _table("Further outsiders: mean absolute relative error", *columns)
    for check in [*checks.splitwise("A100"), *checks.splitwise("H100"), *checks.dynamo()]:
        errors = (f"{check.seen:.1%}", f"{check.held_out:.1%}")
        table.add_row(check.what, str(check.rows), *errors, check.held_out_is)
    return table


def runs_table() -> Table:
    """Steps of whole runs by scales of their first third."""
    columns = ("run", "windows seen", "error there", "windows unseen", "error", "bias")
    table = _table("Steps of real vLLM runs, from their first third of wall time", *columns)
    for run in runs.RUNS:
        found = runs.replayed(run)
        seen, unseen = len(found.calibration.errors), len(found.errors)
        errors = (f"{found.calibration.mape:.1%}", str(unseen), f"{found.mape:.1%}")
        table.add_row(run, str(seen), *errors, f"{found.bias:+.1%}")
    return table


def fit_engine(engine: str, model: str) -> Calibration:
    """The scales that an engine's rows of one model ask for, on H100 and H200 together."""
    _, _, path, precision, weights = next(s for s in ENGINE_SETS if s[:2] == (engine, model))
    parts = []
    for gpu in ("H200", "H100"):
        rows = sample(path, gpu, engine, precision)
        for ranks in (size for size in rows.sizes() if size in (1, 2, 4, 8)):
            place = Layout(model, gpu, ranks, weights=weights, scales=checks.NEUTRAL)
            parts.append((place, rows.of_ranks(ranks)))
    return calibrate(parts)


def engines_table() -> Table:
    """The sets that `lab.physics.engines` carries, fitted anew."""
    names = [name.removesuffix("_us") for name in vars(checks.NEUTRAL)]
    table = _table("Scales by engine", "engine, model", *names, "rows", "error", "p90")
    for engine, model, _, _, weights in ENGINE_SETS:
        found = fit_engine(engine, model)
        scales = [f"{value:.3g}" for value in found.scales.array()]
        off = np.abs(found.errors)
        errors = (f"{off.mean():.1%}", f"{np.quantile(off, 0.9):.1%}")
        table.add_row(f"{engine}, {model} {weights}", *scales, str(len(off)), *errors)
    return table


def report(engines: bool) -> None:
    """Print every comparison; with `engines` also the shipped scales, fitted anew."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    for table in (held_out_table(), sensitivity_table(), further_table(), runs_table()):
        console.print(table)
    console.print(f"A prompt's time when repeated (Splitwise): spread {checks.repeat_spread():.1%}")
    if engines:
        console.print(engines_table())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", help="folder of the measured tables")
    parser.add_argument("--engines", action="store_true", help="also fit the shipped scales anew")
    arguments = parser.parse_args()
    try:
        data_folder(arguments.data)
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        raise SystemExit(2) from None
    report(arguments.engines)


if __name__ == "__main__":
    main()
