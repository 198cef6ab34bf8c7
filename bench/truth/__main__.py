"""The bench of truth: known faults, and what detectors and cause finders say of them.

    python -m bench.truth --quick
    python -m bench.truth --scenarios S1 S8 --rates 10 --seeds 3 --out var/truth/some.json

What was done stays in OUT.jsonl beside OUT.json, a line a run: begun again, it goes on.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from bench.truth.batches import Batch, batches, estimated_s, probe, run_batch
from bench.truth.grid import SEVERITIES, Ask, cells
from bench.truth.kept import Kept, KeptError
from bench.truth.report import scores_of, show
from bench.truth.told import show as show_told
from tailburn.lab.faults.parts import FaultError
from tailburn.lab.workload import WorkloadError

OUT: Final = Path("var/bench-truth/results.json")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenarios", nargs="+", default=[], help="ids, names, pairs, or quiet")
    parser.add_argument("--rates", nargs="+", type=float, help="req/s; default 1 10 100")
    parser.add_argument("--seeds", type=int, default=0, help="so many; default 10, at 100/s 2")
    parser.add_argument("--severities", nargs="+", choices=SEVERITIES, default=SEVERITIES)
    parser.add_argument("--workload", help="name or file, in place of the scenarios' own")
    parser.add_argument("--warm-days", type=int, help="default 8, at 100 req/s 1, quick 1")
    parser.add_argument("--quiet-hours", type=int, help="quiet time a seed; default 168, quick 6")
    parser.add_argument("--out", type=Path, default=OUT, help="results, as .json")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="1 seed, 10 req/s, medium")
    parser.add_argument("--estimate", action="store_true", help="say how long, and end")
    return parser.parse_args()


def ask_of(asked: argparse.Namespace) -> Ask:
    """What is to be run; what is given goes before what QUICK means."""
    quick = asked.quick
    rates = tuple(asked.rates or ((10.0,) if quick else (1.0, 10.0, 100.0)))
    narrowed = tuple(asked.severities) != SEVERITIES
    return Ask(
        scenarios=tuple(asked.scenarios),
        rates=rates,
        seeds=asked.seeds or (1 if quick else 0),
        severities=("medium",) if quick and not narrowed else tuple(asked.severities),
        quiet_minutes=60 * (asked.quiet_hours or (6 if quick else 168)),
        quick=quick,
    )


def main() -> int:
    """Run what isn't done yet; write and print."""
    asked = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 160)
    ask = ask_of(asked)
    warm_days = {r: asked.warm_days or (1 if ask.quick or r >= 100 else 8) for r in ask.rates}
    settings = {
        "workload": asked.workload,
        "warm_days": {f"{r:g}": d for r, d in warm_days.items()},
        "quiet_minutes": ask.quiet_minutes,
    }
    kept = Kept(asked.out.with_suffix(".jsonl"))
    try:
        every = list(cells(ask))
        done = set() if asked.estimate else kept.begin(settings)
        work = batches([c for c in every if c.key not in done], asked.workload, warm_days)
    except (FaultError, WorkloadError, KeptError) as err:
        print(err, file=sys.stderr)
        return 2
    a_minute = probe(ask.rates, asked.workload) if work else {}
    soon_s = estimated_s(work, a_minute, asked.cores)
    told = (
        f"{sum(len(b.cells) for b in work)} runs of {len(every)} to do, {len(work)} warm-ups, "
        f"about {_time(soon_s)} on {asked.cores} cores (measured: "
        + ", ".join(
            f"{1e3 * c.heard_s:.0f} ms a minute at {r:g} req/s, {1e3 * c.proposed_s:.0f} to propose"
            for r, c in a_minute.items()
        )
        + ")"
    )
    console.print(told, highlight=False)
    if asked.estimate:
        return 0
    begun = time.monotonic()
    failed = _run(work, kept, asked.out.with_suffix(".warm"), asked.cores, console)
    wanted = {c.key for c in every}
    runs = [run for run in kept.runs() if run["cell"] in wanted]
    scores = scores_of(runs)
    result: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "bench.truth", *sys.argv[1:]]),
        "settings": settings,
        "runs": len(runs),
        "runs_missing": len(every) - len(runs),
        "estimated_s": round(soon_s),
        "took_s": round(time.monotonic() - begun),
        "cpu_s": round(sum(run["cpu_s"] for run in runs)),
        "requests": sum(run["requests"] for run in runs),
        "scores": {
            system: {name: s.to_json() for name, s in of.items()} for system, of in scores.items()
        },
    }
    asked.out.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    show(scores, console)
    show_told(runs, console)
    console.print(
        f"{result['command']}\n{len(runs)} runs in {_time(result['took_s'])}; {asked.out}",
        highlight=False,
    )
    return 1 if failed else 0


def _run(work: Sequence[Batch], kept: Kept, folder: Path, cores: int, console: Console) -> int:
    """All batches; how many failed. One that fails costs its own runs, not the others'."""
    if not work:
        return 0
    failed = 0
    folder.mkdir(parents=True, exist_ok=True)
    # Spawned: nothing of this process's threads and compiled code is copied half-way. No
    # max_tasks_per_child: with it Python 3.11's pool may wait for ever once all are used up.
    with ProcessPoolExecutor(min(cores, len(work)), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run_batch, batch, kept.path, folder): batch for batch in work}
        for number, one in enumerate(as_completed(waiting), 1):
            names = ", ".join(cell.key for cell in waiting[one].cells[:4])
            more = "" if len(waiting[one].cells) <= 4 else ", ..."
            try:
                took = f"{_time(one.result())} of CPU"
            except Exception as err:
                failed += 1
                took = f"FAILED: {type(err).__name__}: {err}"
            console.print(f"{number}/{len(work)} {names}{more}: {took}", highlight=False)
    shutil.rmtree(folder, ignore_errors=True)
    return failed


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


if __name__ == "__main__":
    raise SystemExit(main())
