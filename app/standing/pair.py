"""`tailburn page who`: which of several services tells people."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tailburn.app.answers.pair import pair_rows
from tailburn.app.asking import ask
from tailburn.app.opening import asked_store
from tailburn.app.standing.incidents import Asked
from tailburn.app.standing.words import about, moment
from tailburn.app.state import known_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.store.state.lease import services

Row = dict[str, Any]


def show_pair(asked: Asked, json: bool) -> None:
    """Print them. Raises UserError."""
    rows = _rows(asked)
    if json:
        json_lines(rows)
    elif rows:
        draw(_table(rows), stdout())
    else:
        stderr().print("no pair: this service has no standby; the setting `pair` makes one")


def _rows(asked: Asked) -> Sequence[Row]:
    if asked.url is not None:
        found: Sequence[Row] = ask(asked.url, "/api/pair", asked.token, {})
        return found
    settings = asked_store(asked.store, asked.config)
    with known_state(settings) as state:
        return pair_rows(services(state)) if state and settings.pair else []


def _table(rows: Sequence[Row]) -> Table:
    drawn = table(["service", "state", "seen", "evaluated up to", "its store"], [])
    for row in rows:
        upto = row["evaluated_ns"]
        cells = [
            row["name"], row["state"], f"{about(row['silent_s'])} ago",
            f"{moment(upto)} UTC" if upto else "-",
            f"{100 * row['covered_24h_ratio']:.0f} % of 24 h",
        ]  # fmt: skip
        drawn.add_row(*(plain(c, "bold" if row["term"] is not None else "") for c in cells))
    return drawn
