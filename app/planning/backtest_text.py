"""A backtest on a terminal: what fired, what it came to, both over time."""

from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from tailburn.app.calculators.words import percent, span
from tailburn.app.planning.backtesting import Backtest
from tailburn.app.standing.words import values_of
from tailburn.app.terminal.output import draw, stderr, stdout
from tailburn.app.terminal.plots import WIDTH, axis, spans_line, sparkline
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import NO_DATA, harmless, plain
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.intervals import Bounds
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.quantities import time_of

SHOWN: Final = 40
_STILL: Final = "still fires"
_MISSED: Final = "missed"


def print_backtest(found: Backtest) -> None:
    """All of it; what could not be judged goes to stderr."""
    console = stdout()
    days = (found.until_ns - found.since_ns) / 86_400e9
    console.print(
        f"{time_of(found.since_ns)} to {time_of(found.until_ns)} UTC, {days:.1f} days, "
        f"{found.requests:,} requests"
    )
    for begin_ns, end_ns in found.holes:
        stderr().print(
            f"a hole from {time_of(begin_ns)} to {time_of(end_ns)} UTC: nothing is kept of it; "
            "alerts that fire are frozen in it"
        )
    for what in found.not_judged:
        stderr().print(harmless(f"not judged: {what}"))
    _print_fired(found, console)
    draw(budget_table(found), console)
    for line in plot(found):
        console.print(harmless(line))
    _print_score(found, console)


def _print_fired(found: Backtest, console: Console) -> None:
    if not found.fired:
        console.print("No alert would have fired.")
        return
    draw(fired_table(found.fired[:SHOWN], found), console)
    if len(found.fired) > SHOWN:
        stderr().print(f"the first {SHOWN} of {len(found.fired):,}; all of them with --json")


def fired_table(fired: Sequence[Fired], found: Backtest) -> Table:
    """A line for each time that an alert fired."""
    drawn = table(["alert", "severity", "slo", "objective", "windows", "by"],
                  ["fires at (UTC)", "for", "in"])  # fmt: skip
    for one in fired:
        key = one.key
        long_s = None if one.end_ns is None else (one.end_ns - one.start_ns) / 1e9
        cells = [
            key.alertname.removeprefix("Tailburn"),
            key.severity,
            key.slo,
            key.objective,
            f"{key.long}/{key.short}",
            values_of(dict(key.by)),
            time_of(one.start_ns),
            _STILL if long_s is None else span(long_s),
            _incident_of(one, found),
        ]
        style = "bold" if key.severity == Severity.PAGE else ""
        drawn.add_row(*(plain(cell, style) for cell in cells))
    return drawn


def _incident_of(one: Fired, found: Backtest) -> str:
    begin, end = one.span(found.until_ns)
    hit = [m for m in found.marked if begin <= m.end_ns and end > m.start_ns]
    return ", ".join(m.name or time_of(m.start_ns) for m in hit)


def budget_table(found: Backtest) -> Table:
    """What each budget had left: at the lowest, and at the end."""
    drawn = table(
        ["slo", "objective", "by"], ["requests", "bad", "lowest left", "at", "at the end"]
    )
    since = pd.Timestamp(found.since_ns, tz="UTC")
    inside = found.budgets[found.budgets["time"] > since]
    for (slo, objective, by), rows in inside.groupby(["slo", "objective", "by"], sort=False):
        left = rows["left"].dropna()
        lowest = None if left.empty else rows.loc[left.idxmin()]
        cells = [
            slo, objective, by, f"{int(rows['requests'].sum()):,}", f"{int(rows['bad'].sum()):,}",
            NO_DATA if lowest is None else percent(lowest["left"]),
            "" if lowest is None else time_of(int(lowest["time"].value)),
            NO_DATA if lowest is None else percent(left.iloc[-1]),
        ]  # fmt: skip
        drawn.add_row(*map(plain, cells))
    return drawn


def plot(found: Backtest) -> Iterator[str]:
    """Incidents, pages, tickets, and the least that any budget of an SLO has left, over time."""
    whole_s = (found.until_ns - found.since_ns) / 1e9
    lines = [
        (name, spans_line([_within(s, found) for s in spans], whole_s))
        for name, spans in (
            ("incidents", [(m.start_ns, m.end_ns) for m in found.marked]),
            ("holes", list(found.holes)),
            *((f"{severity}s", [f.span(found.until_ns) for f in found.fired
                                if f.key.severity == severity]) for severity in Severity),
        )
        if spans
    ]  # fmt: skip
    lines += [(f"{slo.name} left", sparkline(_left(found, slo.name), 1.0)) for slo in found.slos]
    room = max(len(name) for name, _ in lines)
    for name, line in lines:
        yield f"{name:>{room}} │{line}│"
    ticks = [(0, "0"), (WIDTH // 2, span(whole_s / 2)), (WIDTH - 1, span(whole_s))]
    yield from axis(ticks, WIDTH, room + 2)


def _within(given: tuple[int, int], found: Backtest) -> tuple[float, float]:
    begin, end = max(given[0], found.since_ns), min(given[1], found.until_ns)
    return (begin - found.since_ns) / 1e9, (end - found.since_ns) / 1e9


def _left(found: Backtest, slo: str) -> list[float | None]:
    """The least that is left of any budget, in each of WIDTH equal parts."""
    rows = found.budgets[found.budgets["slo"] == slo]
    least = rows.groupby("time")["left"].min()
    edges = pd.to_datetime(
        [
            found.since_ns + (found.until_ns - found.since_ns) * i // WIDTH
            for i in range(1, WIDTH + 1)
        ],
        utc=True,
    )
    at = least.reindex(edges, method="bfill")
    return [None if pd.isna(value) else max(float(value), 0.0) for value in at]


def _print_score(found: Backtest, console: Console) -> None:
    score = found.score
    console.print(f"{score.pages:,} pages, {score.tickets:,} tickets")
    if not found.marked:
        a_week = _told(score.false_a_week)
        console.print(f"pages a week: {a_week}. --incidents FILE tells true ones from false ones.")
        return
    drawn = table(["incident", "from (UTC)"], ["for", "paged after", "ticket after"])
    for one in score.incidents:
        marked = one.marked
        after = [
            _MISSED if ns is None else span(ns / 1e9)
            for ns in (one.page_after_ns, one.ticket_after_ns)
        ]
        lasted = span((marked.end_ns - marked.start_ns) / 1e9)
        drawn.add_row(*map(plain, [marked.name, time_of(marked.start_ns), lasted, *after]))
    draw(drawn, console)
    console.print(f"precision of pages: {_share(score.precision)}")
    console.print(f"recall by page: {_share(score.recall)}")
    console.print(f"recall by page or ticket: {_share(score.recall_any)}")
    console.print(f"false pages a week: {_told(score.false_a_week)}")
    console.print(f"false tickets a week: {_told(score.false_tickets_a_week)}")


def _share(bounds: Bounds | None) -> str:
    if bounds is None:
        return NO_DATA
    return f"{percent(bounds.value)} ({percent(bounds.low)} to {percent(bounds.high)})"


def _told(bounds: Bounds | None) -> str:
    if bounds is None:
        return NO_DATA
    return f"{bounds.value:.2f} ({bounds.low:.2f} to {bounds.high:.2f})"
