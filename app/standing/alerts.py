"""`tailburn alerts`: the state of each alert, since when, and why."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from tailburn.app.answers.alerts import alert_rows
from tailburn.app.asking import ask
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store
from tailburn.app.settings import Settings
from tailburn.app.slo_files import load_slos
from tailburn.app.standing.words import about, moment, values_of
from tailburn.app.state import known_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.evaluation import Status
from tailburn.engine.store.state.alerts import Alerts, Standing
from tailburn.rules.ruleset import watches_of

_NS: Final = 1_000_000_000
_OLD_S: Final = 300.0


def show_alerts(
    store: Path | None,
    config: Path | None,
    url: str | None,
    token: str | None,
    every: bool,
    json: bool,
) -> None:
    """Print how every alert stands. Raises UserError."""
    if url is not None and store is not None:
        raise UserError("--url asks a running service: no --store")
    rows = ask(url, "/api/alerts", token) if url is not None else _stored(store, config)
    shown = [row for row in rows if every or row["status"] != Status.INACTIVE]
    if json:
        json_lines(shown)
        return
    if shown:
        draw(alerts_table(shown), stdout())
    quiet = len(rows) - sum(row["status"] != Status.INACTIVE for row in rows)
    if quiet and not every:
        stderr().print(f"{quiet:,} more are not in trouble; --all shows them")


def _stored(folder: Path | None, config: Path | None) -> list[dict[str, Any]]:
    settings = asked_store(folder, config)
    standing = _standing(settings)
    if standing.minute_ns is None:
        stderr().print("no alert was ever evaluated here: no service ran with --slo on this store")
    else:
        ago_s = time.time() - standing.minute_ns / _NS
        told = f"as of {moment(standing.minute_ns)} UTC"
        late = f", {about(ago_s)} ago: no service runs on it" if ago_s > _OLD_S else ""
        stderr().print(told + late)
    watches = watches_of(load_slos(settings.slo)) if settings.slo else []
    return alert_rows(standing.states, watches)


def _standing(settings: Settings) -> Standing:
    with known_state(settings) as state:
        return Standing(None, {}) if state is None else Alerts(state).standing()


def alerts_table(rows: Sequence[dict[str, Any]]) -> Table:
    """A line for each alert; pages that fire stand out."""
    has_values = any(row["by"] for row in rows)
    names = ["state", "severity", "alert", "slo", "objective", *(["of"] if has_values else [])]
    drawn = table([*names, "windows", "since"], [])
    drawn.add_column("why", overflow="fold")
    for row in rows:
        cells = [row["status"], row["severity"], row["alertname"], row["slo"], row["objective"]]
        cells += [values_of(row["by"])] if has_values else []
        cells += [f"{row['long']} {row['short']}", moment(row["since_ns"]), row["why"]]
        is_grave = row["status"] in (Status.FIRING, Status.FROZEN) and row["severity"] == "page"
        drawn.add_row(*(plain(cell, "bold" if is_grave else "") for cell in cells))
    return drawn
