"""The counterfactual beside the truth: the lab run again with the same seed and without the fault.

    python -m bench.counterfactual [--rate 8] [--minutes 40] [--seed 3] [--only S24]

Bad are requests over 1.2 times the p95 of the time before the fault. Said is how many of the
requests in the fault would have been bad with the hops of the fault as they were before; true is
how many are in the run without. Exit code 1 where a hop without feedback is off by more than the
95 % error of both shares.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from bench.counterfactual.rows import answered, rows_of
from tailburn.engine.counterfactual import FED_BACK, cured_by
from tailburn.engine.excess import measure
from tailburn.lab.run import Motion, Plan
from tailburn.lab.run.compose import compose

MINUTE_NS: Final = 60 * 10**9
WARM_MINUTES: Final = 20
OVER: Final = 1.2
Z95: Final = 1.96
_NS: Final = 1e9


@dataclass(frozen=True)
class Case:
    """A scenario, and the hops in which its fault is."""

    scenario: str
    severity: str
    hops: tuple[str, ...]
    is_whole: bool = False  # these hops are all that it moves: nothing is fed back elsewhere

    @property
    def feeds_back(self) -> bool:
        """Whether what is said of it is a bound."""
        return not self.is_whole and any(hop in FED_BACK for hop in self.hops)


CASES: Final = (
    Case("S27", "medium", ("client", "client>gateway")),
    Case("S29", "medium", ("client>gateway",)),
    Case("S30", "medium", ("router>engine",)),
    Case("S24", "medium", ("gateway",)),
    Case("S23", "weak", ("gateway",)),
    Case("S31", "medium", ("retrieval",)),
    Case("S16", "weak", ("kv_load",), is_whole=True),
    Case("S16", "medium", ("kv_load",)),
    Case("S16", "medium", ("kv_load", "queue"), is_whole=True),
    Case("S21", "medium", ("tokenizer",)),
    Case("S7", "strong", ("prefill",)),
    Case("S7", "strong", ("prefill", "queue")),
    Case("S8", "strong", ("prefill",)),
    Case("S13", "medium", ("queue",)),
)


@dataclass(frozen=True)
class Compared:
    """Shares of the requests in the time of the fault that were bad."""

    case: Case
    count: int
    bad: float  # with the fault
    said: float  # with its hops as before
    true: float  # in the run without it
    error: float  # half width, at 95 %

    @property
    def holds(self) -> bool:
        """Equal within the error; of hops that feed back, no fewer than true."""
        if self.case.feeds_back:
            return self.said >= self.true - self.error
        return abs(self.said - self.true) <= self.error


def compared(case: Case, per_s: float, minutes: int, seed: int) -> Compared:
    """Both runs of a case, and what is said of the first."""
    begin, end = (WARM_MINUTES + minutes, WARM_MINUTES + 2 * minutes)
    composed = compose(
        [case.scenario], per_s=per_s, seed=seed, begin_ns=begin * MINUTE_NS,
        end_ns=end * MINUTE_NS, severity=case.severity, at_noon=True,
    )  # fmt: skip
    before, during = _rows(composed.plan, begin, end)
    _, without = _rows(replace(composed.plan, faults=()), begin, end)
    threshold_s = OVER * float(np.quantile(measure(before, "ttft").total_ns, 0.95)) / _NS
    count, bad, cured = cured_by(during, before, "ttft", threshold_s, case.hops)
    times = measure(without, "ttft").total_ns
    true = float((times > threshold_s * _NS).mean())
    said = (bad - cured) / count
    error = Z95 * math.sqrt(_variance(said, count) + _variance(true, len(times)))
    return Compared(case, count, bad / count, said, true, error)


def _variance(ratio: float, count: int) -> float:
    """Of a share; that of the time before, by which it was put back, comes on top."""
    return 2 * max(ratio, 1 / count) * (1 - ratio) / count


def _rows(plan: Plan, begin: int, end: int) -> tuple[pa.Table, pa.Table]:
    """Requests that were asked before the fault and in it; until all of them are answered."""
    motion = Motion(plan)
    told = answered(motion.advance((end + WARM_MINUTES) * MINUTE_NS).attempts)
    minute = told.arrival_ns // MINUTE_NS
    return tuple(
        rows_of(told.take((minute >= first) & (minute < last)))
        for first, last in ((WARM_MINUTES, begin), (begin, end))
    )


def results(cases: Sequence[Case], per_s: float, minutes: int, seed: int) -> Iterator[Compared]:
    """Case by case."""
    for case in cases:
        yield compared(case, per_s, minutes, seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 0 when all holds."""
    options = _options(arguments)
    cases = [case for case in CASES if options.only in ("", case.scenario)]
    found = list(results(cases, options.rate, options.minutes, options.seed))
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table(found))
    return 0 if all(one.holds for one in found) else 1


def table(found: Sequence[Compared]) -> Table:
    """A line for each case."""
    drawn = Table(box=box.SIMPLE)
    for name in ("scenario", "hops put back"):
        drawn.add_column(name)
    for name in ("requests", "bad", "said: still bad", "true: bad without", "error", "so"):
        drawn.add_column(name, justify="right")
    for one in found:
        bound = one.case.feeds_back
        verdict = ("a bound, holds" if one.holds else "NO BOUND") if bound else (
            "equal" if one.holds else "OFF"
        )  # fmt: skip
        said = f"{'at most ' if bound else ''}{one.said:.2%}"
        drawn.add_row(
            f"{one.case.scenario} {one.case.severity}", ", ".join(one.case.hops),
            f"{one.count:,}", f"{one.bad:.2%}", said, f"{one.true:.2%}", f"± {one.error:.2%}",
            verdict,
        )  # fmt: skip
    return drawn


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.counterfactual", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rate", type=float, default=8.0, help="req/s, mean over a week")
    parser.add_argument("--minutes", type=int, default=40, help="before the fault, and of it")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--only", default="", help="one scenario")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
