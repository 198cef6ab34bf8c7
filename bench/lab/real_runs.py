"""Three real runs of vLLM replayed in the lab's engine: told and foretold, side by side.

    python -m bench.lab.real_runs [--data FOLDER]

Of LLMServingSim's validation runs (MIT): 300 requests at 10 req/s on desktop GPUs. Steps are
calibrated on the first third of a run's wall time, KV blocks are read off the log's share of
them there. Then the engine gets all arrivals with their lengths, and nothing else. Compared
is what came after that third: requests whose first token was made later.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table as Shown

from bench.lab.data import Table, data_folder, read_table
from bench.lab.runs import RUNS, TOKEN_BUDGET, windows
from tailburn.lab.physics.calibrate import calibrate
from tailburn.lab.physics.layout import Layout, StepModel
from tailburn.lab.physics.models import MODELS
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine import engine_add, engine_forget, engine_step
from tailburn.lab.world.engine_make import EngineSettings, make_engines

F64 = NDArray[np.float64]

MOST_SEQUENCES: Final = 128
BLOCK: Final = 16
PLENTY: Final = 100_000
"""KV blocks where the log never says that any is in use."""
LIMITS: Final = {50: 0.15, 95: 0.25}
"""Percentile, and the relative error asked for."""
MEASURES: Final = {"queue": "queue time", "ttft": "TTFT", "tpot": "TPOT"}
SEED: Final = 1


@dataclass(frozen=True)
class Line:
    """One figure of a run: seconds measured, seconds foretold."""

    run: str
    measure: str
    percentile: int
    measured_s: float
    foretold_s: float

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.foretold_s / self.measured_s - 1.0

    @property
    def limit(self) -> float:
        return LIMITS[self.percentile]

    @property
    def met(self) -> bool:
        return abs(self.error) <= self.limit


def _measures(queued: F64, scheduled: F64, first: F64, last: F64, tokens: F64) -> dict[str, F64]:
    return {
        "queue": scheduled - queued,
        "ttft": first - queued,
        "tpot": (last - first) / np.maximum(tokens - 1, 1),
    }


def _measured(rows: Table) -> dict[str, F64]:
    names = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts", "output_toks")
    return _measures(*(rows[name] for name in names))


def blocks_of(run: str, until_s: float) -> int:
    """KV blocks of a run: tokens that its requests held over the share in use, by `until_s`."""
    log, rows = read_table(f"vllmrun_{run}_timeseries.csv.gz"), _requests(run)
    zero = rows["queued_ts"].min()
    first, last = rows["first_token_ts"] - zero, rows["last_token_ts"] - zero
    told = (log["kv_cache_pct"] > 20) & (log["kv_cache_pct"] < 95) & (log["t"] <= until_s)
    if not told.any():
        return PLENTY
    found = []
    for at, share in zip(log["t"][told], log["kv_cache_pct"][told] / 100, strict=True):
        held = (first <= at) & (last > at)
        made = (rows["output_toks"] - 1) * (at - first) / np.maximum(last - first, 1e-9)
        blocks = np.ceil((rows["input_toks"] + made)[held] / BLOCK).sum()
        found.append(blocks / share)
    return int(np.median(found))


def _requests(run: str) -> Table:
    """A run's requests in the order of their arrival."""
    rows = read_table(f"vllmrun_{run}_requests.csv.gz")
    order = np.argsort(rows["arrival_time"], kind="stable")
    return {name: column[order] for name, column in rows.items()}


def replay(layout: Layout, rows: Table, blocks: int) -> dict[str, F64]:
    """The same measures of every request, from the lab's engine."""
    settings = EngineSettings(
        kv_blocks=blocks,
        kv_bytes_per_token=int(MODELS[layout.model].kv_bytes_per_token(layout.kv)),
        max_num_seqs=MOST_SEQUENCES,
        max_num_batched_tokens=TOKEN_BUDGET,
    )
    count = len(rows["arrival_time"])
    e = make_engines([(settings, StepModel.of(layout))], count + 8, SEED)
    arrival = ((rows["arrival_time"] - rows["arrival_time"].min()) * 1e9).astype(np.int64)
    columns = (c.QUEUED_NS, c.SCHEDULED_NS, c.PREFILL_END_NS, c.LAST_NS)
    found = np.full((count, len(columns)), np.nan)
    number: dict[int, int] = {}
    added = 0
    while added < count or number:
        due = int(e.rep[0, c.NEXT_NS])
        if added < count and (due < 0 or arrival[added] <= due):
            prompt, output = int(rows["input_toks"][added]), int(rows["output_toks"][added])
            slot = engine_add(
                e, 0, int(arrival[added]), added, prompt, output, 0, 0, 0, -1, 0, 0, -1, 0, -1
            )
            number[int(slot)] = added
            added += 1
        elif due >= 0:
            engine_step(e, 0, due)
        else:
            raise RuntimeError(f"the engine stands still with {len(number)} requests in it")
        for kind, slot, _ in e.events[1 : int(e.events[0, 0]) + 1].tolist():
            if kind == c.EVENT_DONE:
                found[number.pop(slot)] = e.seq[slot, list(columns)]
                engine_forget(e, slot)
        e.events[0, 0] = 0
    queued, scheduled, first, last = found.T / 1e9
    return _measures(queued, scheduled, first, last, rows["output_toks"])


def lines(run: str) -> Iterator[Line]:
    """Every figure of a run, from its first third."""
    seen, layout, rows = windows(run), RUNS[run], _requests(run)
    third_s = float(seen.end_s.max()) / 3
    scales = calibrate([(layout, seen.observed.where(seen.end_s <= third_s))]).scales
    told = _measured(rows)
    foretold = replay(replace(layout, scales=scales), rows, blocks_of(run, third_s))
    later = rows["first_token_ts"] - rows["queued_ts"].min() > third_s
    for measure in MEASURES:
        for percentile in LIMITS:
            both = (np.percentile(one[measure][later], percentile) for one in (told, foretold))
            yield Line(run, measure, percentile, *(float(x) for x in both))


def report() -> bool:
    """Print the table; whether every figure is within its limit."""
    title = "Real vLLM runs, from the first third of their wall time: what came after"
    table = Shown(title=title, title_justify="left", box=box.SIMPLE)
    columns = ("run", "figure", "measured", "foretold", "error", "limit", "")
    for name in columns:
        table.add_column(name, justify="left" if name in ("run", "figure", "") else "right")
    every = [line for run in RUNS for line in lines(run)]
    for line in every:
        unit, factor = ("ms", 1e3) if line.measure == "tpot" else ("s", 1.0)
        figure = f"{MEASURES[line.measure]} p{line.percentile}"
        both = (f"{x * factor:.1f} {unit}" for x in (line.measured_s, line.foretold_s))
        error, limit = f"{line.error:+.1%}", f"{line.limit:.0%}"
        table.add_row(line.run, figure, *both, error, limit, "" if line.met else "missed")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    met = sum(line.met for line in every)
    console.print(f"{met} of {len(every)} figures within their limits")
    return met == len(every)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", help="folder of the measured tables")
    arguments = parser.parse_args()
    try:
        data_folder(arguments.data)
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        return 2
    report()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
