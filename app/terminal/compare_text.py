"""A window against an earlier one on a terminal: bands, who made requests bad, the queue's part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailburn.app.answers.compare import batching_note, compare_verdict, replicas_verdict
from tailburn.app.terminal.output import draw, stdout
from tailburn.app.terminal.plots import sparkline
from tailburn.app.terminal.tables import bad_table, band_table
from tailburn.app.terminal.text import duration, share

Row = dict[str, Any]
CLOCK_TITLES: Final = {"ttft": "to the first token", "decode": "from the first token to the last"}


@dataclass(frozen=True)
class Compared:
    """What was asked, as it was typed."""

    slowest: str
    ago: str
    threshold: str
    budget_ratio: float


def print_compared(rows: Sequence[Row], asked: Compared) -> None:
    """All of it, in the order of the rows."""
    of = {what: [row for row in rows if row["what"] == what] for what in ("bad", "queue")}
    for clock in CLOCK_TITLES:
        band = [row for row in rows if row["what"] == "band" and row["clock"] == clock]
        if band:
            _print_band(band, asked)
    if of["bad"]:
        _print_bad(of["bad"], asked)
    if of["queue"] and of["bad"] and of["bad"][-1]["bad"]:
        _print_queue(of["queue"], asked)
    for row in rows:
        if row["what"] == "batching":
            stdout().print(batching_note(row))


def _print_band(rows: Sequence[Row], asked: Compared) -> None:
    total, console = rows[-1], stdout()
    console.print(
        f"Mean of the slowest {asked.slowest} {CLOCK_TITLES[total['clock']]}: "
        f"{duration(total['mean_s'])} ({total['count']:,} requests), {asked.ago} before "
        f"{duration(total['baseline_mean_s'])} ({total['baseline_count']:,})"
    )
    draw(band_table(rows), console)
    console.print(compare_verdict(rows) + "\n")


def _print_bad(rows: Sequence[Row], asked: Compared) -> None:
    total, console = rows[-1], stdout()
    at_least = "at least " if total["lower_bound"] else ""
    console.print(
        f"Over {asked.threshold} to the first token: {total['bad']:,} of {total['count']:,} "
        f"requests, {asked.ago} before {total['baseline_bad_ratio']:.1%}; with hops as they were "
        f"then, {at_least}{total['cured']:,} would not be"
    )
    draw(bad_table(rows), console)
    console.print(replicas_verdict(rows) + "\n")


def _print_queue(rows: Sequence[Row], asked: Compared) -> None:
    """The budget of the window as it burns down, and what the queue alone would burn of it."""
    last, console = rows[-1], stdout()
    if last["left_ratio"] is None:
        return
    console.print(
        f"The window's budget, {share(asked.budget_ratio)} over {asked.threshold}, burns down to "
        f"{share(last['left_ratio'])}; the queue alone (at least) to "
        f"{share(last['queue_left_ratio'])}"
    )
    for name, column in (("all hops", "left_ratio"), ("queue alone", "queue_left_ratio")):
        console.print(f"{name:>11} │{sparkline([row[column] for row in rows], 1.0)}│")
    console.print("")
