"""SLOs suggested from a healthy week of the lab, tried on a week with faults: as forecast?

    python -m bench.suggest [--rate 10] [--days 7] [--seed 1] [--keep DIR]

The proposal forecasts its false pages from the week that it was made of. Another week, with
another seed and a fault every four hours or so of the day, tells how many there are, and which
faults are paged. Exit code 1 where false pages lie outside of the forecast's interval.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from bench.truth.rows import rows_of
from tailburn.app.planning.backtesting import Backtest, backtest, of_store
from tailburn.app.planning.stored import Stretch, stretch_of
from tailburn.app.planning.suggesting import Suggested, suggest
from tailburn.engine.backtest.incidents import Marked
from tailburn.engine.backtest.score import GRACE_NS
from tailburn.engine.rollup import fold
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange, Window
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.suggest.proposal import HEADROOM, MONTH_DAYS
from tailburn.engine.suggest.quiet import Wanted
from tailburn.lab.faults.catalogue import fleet_for, scenario
from tailburn.lab.faults.parts import Fault
from tailburn.lab.faults.parts import Severity as Strength
from tailburn.lab.faults.scenario import usual
from tailburn.lab.fleet import Fleet
from tailburn.lab.run import Motion, Plan, Traffic
from tailburn.lab.run.compose import with_room

HOUR_NS: Final = 3_600 * 10**9
DAY_NS: Final = 24 * HOUR_NS
EPOCH_NS: Final = 1_764_547_200 * 10**9
"""A Monday, 00:00 UTC."""
LASTS_NS: Final = HOUR_NS * 3 // 4
FAULTS: Final = (
    ("S23", Strength.STRONG), ("S24", Strength.MEDIUM), ("S8", Strength.STRONG),
    ("S31", Strength.STRONG), ("S7", Strength.STRONG), ("S30", Strength.STRONG),
    ("S21", Strength.STRONG), ("S23", Strength.MEDIUM), ("S20", Strength.STRONG),
    ("S18", Strength.STRONG), ("S27", Strength.STRONG), ("S29", Strength.STRONG),
)  # fmt: skip
"""Faults of a plain fleet, of hops and engines.

S27 and S29 lie before the gateway, where these SLOs do not measure: they are there to be missed.
"""


@dataclass(frozen=True)
class Weeks:
    """Two stores, and what was broken in the second."""

    healthy: ParquetStore
    broken: ParquetStore
    marked: tuple[Marked, ...]


def make(folder: Path, per_s: float, days: float, seed: int) -> Weeks:
    """Run both weeks."""
    asking = Traffic(usual(), per_s)
    scenarios = [scenario(name) for name in dict.fromkeys(name for name, _ in FAULTS)]
    fleet = with_room(fleet_for(scenarios, per_s), [asking])
    faults = tuple(_faults(days, seed, fleet))
    stores = []
    weeks: tuple[tuple[str, tuple[Fault, ...], int], ...] = (
        ("healthy", (), seed),
        ("broken", faults, seed + 1),
    )
    for name, these, own in weeks:
        store = ParquetStore(folder / name)
        _run(store, Plan(fleet, (asking,), own, faults=these), days)
        stores.append(store)
    marked = tuple(
        Marked(EPOCH_NS + f.truth.start_ns, EPOCH_NS + f.truth.end_ns,
               f"{f.truth.scenario} {f.truth.severity}")
        for f in faults
    )  # fmt: skip
    return Weeks(stores[0], stores[1], marked)


def _faults(days: float, seed: int, fleet: Fleet) -> Iterator[Fault]:
    """Spread over the week, so that each is followed by hours in which all is well."""
    each_ns = round(days * DAY_NS / (len(FAULTS) + 1))
    for number, (name, severity) in enumerate(FAULTS, start=1):
        begin = number * each_ns // HOUR_NS * HOUR_NS
        yield scenario(name).fault(fleet, severity, begin, begin + LASTS_NS, seed + number)


def _run(store: ParquetStore, plan: Plan, days: float) -> None:
    motion = Motion(plan)
    for hour in range(round(days * 24)):
        told = motion.advance((hour + 1) * HOUR_NS)
        rows = rows_of(told.attempts, plan.fleet)
        index = rows.schema.get_field_index("received_ns")
        at = pa.array(rows["received_ns"].to_numpy() + EPOCH_NS)
        rows = rows.set_column(index, rows.schema.field(index), at)
        for table, part in (("requests", rows), ("rollups", fold(rows))):
            store.publish(table, part, LogRange(hour + 1, hour + 1))


def tried(weeks: Weeks) -> tuple[Suggested, Backtest]:
    """What is suggested of the first week, and what it says of the second."""
    suggested = suggest(_stretch(weeks.healthy), Wanted(("model",), "gateway", HEADROOM))
    slos = parse(suggested.documents).slos
    stretch = _stretch(weeks.broken)
    counted = of_store(slos, stretch, stretch.since_ns, to_last=True)
    return suggested, backtest(slos, counted, weeks.marked, GRACE_NS)


def _stretch(store: ParquetStore) -> Stretch:
    return stretch_of(store, Window(), {})


@dataclass(frozen=True)
class Held:
    """False calls of one severity in the second week, and what was forecast of it."""

    severity: Severity
    forecast: tuple[float, float, float]  # of as much healthy time: figure, low, high
    false: int

    @property
    def holds(self) -> bool:
        """Within the interval."""
        return self.forecast[1] <= self.false <= self.forecast[2]


def held(suggested: Suggested, found: Backtest) -> tuple[Held, Held]:
    """Pages and tickets."""
    score = found.score
    months = score.healthy_ns / DAY_NS / MONTH_DAYS
    return (
        Held(Severity.PAGE, _forecast(suggested, Severity.PAGE, months), len(score.false_pages)),
        Held(
            Severity.TICKET, _forecast(suggested, Severity.TICKET, months),
            len(score.false_tickets),
        ),
    )  # fmt: skip


def _forecast(
    suggested: Suggested, severity: Severity, months: float
) -> tuple[float, float, float]:
    [one] = [forecast.a_month[severity] for forecast in suggested.forecasts]
    return one.value * months, one.low * months, one.high * months


def show(suggested: Suggested, found: Backtest) -> bool:
    """Print all of it; whether false pages are as forecast."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    for _, text in suggested.documents:
        console.print(text, markup=False, highlight=False)
    faults = _table("fault", "paged after, min", "ticket after, min")
    for one in found.score.incidents:
        after = (one.page_after_ns, one.ticket_after_ns)
        faults.add_row(one.marked.name, *("-" if a is None else f"{a / 60e9:.0f}" for a in after))
    console.print(faults)
    calls = _table("false", "forecast of this time", "were", "")
    results = held(suggested, found)
    for each in results:
        value, low, high = each.forecast
        calls.add_row(
            f"{each.severity}s", f"{value:.1f} ({low:.1f} to {high:.1f})", str(each.false),
            "as forecast" if each.holds else "NOT AS FORECAST",
        )  # fmt: skip
    console.print(calls)
    for name, bounds in (("recall by page", found.score.recall),
                         ("recall by page or ticket", found.score.recall_any),
                         ("precision of pages", found.score.precision)):  # fmt: skip
        if bounds is not None:
            console.print(f"{name}: {bounds.value:.2f} ({bounds.low:.2f} to {bounds.high:.2f})")
    return results[0].holds


def _table(*names: str) -> Table:
    drawn = Table(box=box.SIMPLE)
    for number, name in enumerate(names):
        drawn.add_column(name, justify="right" if number else "left")
    return drawn


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the proposal, the faults found and the false calls; 0 where pages are as forecast."""
    options = _options(arguments)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        weeks = make(options.keep or Path(folder), options.rate, options.days, options.seed)
        made_s = time.monotonic() - begun
        suggested, found = tried(weeks)
    holds = show(suggested, found)
    print(f"made in {made_s:.0f} s, all of it in {time.monotonic() - begun:.0f} s")
    return 0 if holds else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.suggest", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rate", type=float, default=10.0, help="req/s, mean over a week")
    parser.add_argument("--days", type=float, default=7.0, help="of each of the two weeks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None, metavar="DIR", help="keep the stores")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
