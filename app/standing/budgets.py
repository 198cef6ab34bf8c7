"""`tailburn budget`: what is burned, what is left, and when the rest is gone."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from tailburn.app.answers.budgets import budget_rows
from tailburn.app.answers.mixes import Made, kept_in, mix_rows, moved
from tailburn.app.answers.promises import Promise, promises_in, promises_of
from tailburn.app.answers.question import question
from tailburn.app.asking import ask
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store, store_of
from tailburn.app.settings import Settings
from tailburn.app.slo_files import load_slos
from tailburn.app.standing.words import about, moment, values_of
from tailburn.app.state import known_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.plots import sparkline
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import harmless, plain, share
from tailburn.engine.problems import one_of
from tailburn.engine.slo.budget import Outlook
from tailburn.engine.store.api import StoreError
from tailburn.engine.store.state.versions import Versions

Row = Mapping[str, Any]

_NS: Final = 1_000_000_000
_TOLD_UNMEASURED: Final = 0.01
_PLOTS: Final = 20
ANEW: Final = "`tailburn slo suggest` makes it anew"


def show_budgets(
    store: Path | None,
    config: Path | None,
    url: str | None,
    token: str | None,
    slo: str | None,
    until: str | None,
    json: bool,
) -> None:
    """Print how every budget stands. Raises UserError."""
    if url is not None and (store is not None or until is not None):
        raise UserError("--url asks a running service how it is now: no --store, no --until")
    if url is not None:
        rows = ask(url, "/api/budgets", token, {"slo": slo} if slo else {})
    else:
        rows = _stored(asked_store(store, config), slo, until)
    if json:
        json_lines(rows)
    elif not rows:
        stderr().print("no budget: no service ran with --slo on this store")
    else:
        _draw(rows)


def _stored(settings: Settings, slo: str | None, until: str | None) -> list[dict[str, Any]]:
    now_ns = time.time_ns()
    at_ns = question(None, until, None, (), now_ns).window.until_ns or now_ns
    promises, made = _in_force(settings)
    names = dict.fromkeys(promise.slo for promise in promises)
    if slo is not None and slo not in names:
        raise UserError(f"--slo: {slo!r} {one_of(slo, names)}")
    try:
        opened = store_of(settings)
        told = moved(mix_rows(opened, [one for one in made if slo in (None, one.name)], at_ns))
        return budget_rows(opened, promises, at_ns, slo=slo, moved=told)
    except StoreError as error:
        raise UserError(str(error)) from None


def _in_force(settings: Settings) -> tuple[list[Promise], Sequence[Made]]:
    """The budgets of the settings' SLOs, or those that a service ran with last; and their mixes."""
    if settings.slo:
        slos = load_slos(settings.slo)
        return promises_of(slos), slos
    with known_state(settings) as state:
        versions = [] if state is None else Versions(state).in_force()
    return promises_in(versions), kept_in(versions)


def _draw(rows: Sequence[Row]) -> None:
    console = stdout()
    draw(_table(rows), console)
    plotted = [row for row in rows if row["left_ratio"] is not None]
    width = max((len(_title(row)) for row in plotted[:_PLOTS]), default=0)
    for row in plotted[:_PLOTS]:
        course = sparkline([point["left_ratio"] for point in row["course"]], 1.0)
        left = f"{share(row['left_ratio'])} left, since {moment(row['begin_ns'])}"
        console.print(harmless(f"{_title(row):>{width}} │{course}│ {left}"))
    if len(plotted) > _PLOTS:
        stderr().print(f"the first {_PLOTS} are drawn; --slo or --json for the others")
    for slo, told in {row["slo"]: row.get("mix_moved") for row in rows}.items():
        if told:
            console.print(harmless(f"{slo} was made of other requests: {told}; {ANEW}"))


def _table(rows: Sequence[Row]) -> Table:
    has_values = any(row["by"] for row in rows)
    left = ["slo", "objective", *(["of"] if has_values else []), "window"]
    right = ["may be bad", "requests", "bad", "burned", "left", "burn now"]
    drawn = table([*left, "gone"], [])
    for name in right:
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("measured")
    for row in rows:
        cells = [row["slo"], row["objective"], *([values_of(row["by"])] if has_values else [])]
        cells += [row["window"], _gone(row), share(row["budget_ratio"])]
        cells += [f"{row['requests']:,}", f"{row['bad']:,}"]
        cells += [_ratio(row["burned_ratio"]), _ratio(row["left_ratio"])]
        cells += ["" if row["burn_rate"] is None else f"{row['burn_rate']:.1f}x", _measured(row)]
        style = "bold" if row["outlook"] == Outlook.GONE else ""
        drawn.add_row(*(plain(cell, style) for cell in cells))
    return drawn


def _title(row: Row) -> str:
    return " ".join(part for part in (row["slo"], row["objective"], values_of(row["by"])) if part)


def _ratio(value: float | None) -> str:
    return "unmeasured" if value is None else share(value)


def _gone(row: Row) -> str:
    """When the budget is gone, at the rate of the last hour."""
    if row["outlook"] == Outlook.RUNS_OUT:
        left_s = (row["gone_ns"] - row["course"][-1]["at_ns"]) / _NS
        return f"in {about(left_s)}"
    if row["outlook"] == Outlook.UNMEASURED:
        return "no request lately" if row["requests"] else "unknown"
    return str(row["outlook"])


def _measured(row: Row) -> str:
    """How much of the window the figures rest on."""
    if row["left_ratio"] is None:
        seen = row["unmeasured"]
        return f"unmeasured: {seen:,} requests can't be judged" if seen else "unmeasured"
    now_ns = row["course"][-1]["at_ns"]
    told = f"since {moment(row['measured_since_ns'])}"
    whole_s, seen_s = now_ns - row["begin_ns"], now_ns - row["measured_since_ns"]
    if seen_s > 0.98 * whole_s:  # noqa: PLR2004
        told = "all of it"
    unmeasured = row["unmeasured_ratio"] or 0.0
    return told if unmeasured < _TOLD_UNMEASURED else f"{told}, {share(unmeasured)} unmeasured"
