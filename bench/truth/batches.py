"""Runs put together by the warm-up that they share, and how long they will take."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.truth.cell import kept_warm, run_cell, warm_up
from bench.truth.grid import Cell
from bench.truth.kept import Kept
from bench.truth.ours import Ours
from bench.truth.proposal import TRIED_NS
from tailburn.engine.rollup import MINUTE_NS
from tailburn.lab.workload import Profile, load, named
from tailburn.lab.workload.figures import FIGURES

DAY: Final = 1_440
PROBE_MINUTES: Final = 120


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU a minute: simulated and heard by all, and tried proposals on."""

    heard_s: float
    proposed_s: float


@dataclass(frozen=True)
class Batch:
    """Runs that share a warm-up."""

    key: str
    warm_minutes: int
    cells: tuple[Cell, ...]
    workload: str | None

    @property
    def minutes(self) -> int:
        """Minutes simulated in all."""
        return self.warm_minutes + sum(cell.minutes for cell in self.cells)


def batches(todo: Sequence[Cell], workload: str | None, warm_days: dict[float, int]) -> list[Batch]:
    """Runs by what they share: fleet, workload, rate, seed; the longest first."""
    given = profile_of(workload)
    shared: dict[str, list[Cell]] = {}
    for cell in todo:
        of = f"{cell.fleet(given)}|{cell.profile(given).name}|{cell.per_s}|{cell.seed}"
        of += f"|{cell.shape(DAY * MINUTE_NS)}"
        shared.setdefault(hashlib.sha256(of.encode()).hexdigest()[:16], []).append(cell)
    made = [
        Batch(key, warm_days[some[0].per_s] * DAY, tuple(some), workload)
        for key, some in shared.items()
    ]
    return sorted(made, key=lambda b: -b.minutes * b.cells[0].per_s)


def profile_of(workload: str | None) -> Profile | None:
    """The workload asked for, by name or from a file; None: what each scenario needs."""
    if workload is None:
        return None
    return named(workload) if workload in FIGURES else load(Path(workload))


def run_batch(batch: Batch, lines: Path, folder: Path) -> float:
    """Warm up once, then each run; adds lines. Seconds of CPU it took."""
    begun = time.process_time()
    given = profile_of(batch.workload)
    path = folder / f"{batch.key}.warm"
    warm = kept_warm(path, batch.cells[0], given, batch.warm_minutes)
    for cell in batch.cells:
        Kept(lines).add({**run_cell(cell, warm), "warm": batch.key})
    path.unlink()
    return time.process_time() - begun


def probe(rates: Sequence[float], workload: str | None) -> dict[float, Cost]:
    """What a minute takes at each rate, measured on the usual fleet."""
    given = profile_of(workload)
    found = {}
    for per_s in rates:
        cell = Cell("S21", "medium", per_s, 0)
        warm_up(cell, given, 10)  # compiled code loaded
        warm = warm_up(cell, given, PROBE_MINUTES)
        [proposing_s] = [s.proposing_s() for s in warm.systems if isinstance(s, Ours)]
        found[per_s] = Cost(warm.took_s / PROBE_MINUTES, proposing_s / PROBE_MINUTES)
    return found


def estimated_s(work: Sequence[Batch], a_minute: dict[float, Cost], cores: int) -> float:
    """Seconds until all is done, on so many cores."""
    each = [_taken_s(batch, a_minute[batch.cells[0].per_s]) for batch in work]
    return max(sum(each) / cores, max(each, default=0.0))


def _taken_s(batch: Batch, cost: Cost) -> float:
    tried = min(batch.warm_minutes, TRIED_NS // MINUTE_NS)
    return batch.minutes * cost.heard_s + tried * cost.proposed_s
