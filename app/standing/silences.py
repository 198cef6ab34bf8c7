"""`tailburn silences`: shown, added and ended, in a store or through a running service."""

import time
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tailburn.alerts.silences.matching import MatcherError, new_silence
from tailburn.app.answers.question import duration_ns
from tailburn.app.answers.silences import silence_row
from tailburn.app.asking import ask, tell
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store
from tailburn.app.standing.incidents import Asked, kept
from tailburn.app.standing.words import moment
from tailburn.app.state import known_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.store.state.silences import Silences

Row = dict[str, Any]


def show_silences(asked: Asked, every: bool, json: bool) -> None:
    """Print what nobody is told of. Raises UserError."""
    if asked.url is not None:
        rows: Sequence[Row] = ask(
            asked.url, "/api/silences", asked.token, {"all": str(every).lower()}
        )
    else:
        rows = _stored(asked, every)
    if json:
        json_lines(rows)
    elif rows:
        draw(_table(rows), stdout())
    else:
        stderr().print("nothing is silenced")


def add_silence(
    asked: Asked,
    matchers: Sequence[str],
    lasts: str,
    begins_in: str | None,
    who: str | None,
    why: str,
    json: bool,
) -> None:
    """Begin one, and print it. Raises UserError."""
    now_ns = time.time_ns()
    starts_ns = now_ns + (duration_ns("--in", begins_in) if begins_in else 0)
    ends_ns = starts_ns + duration_ns("--for", lasts)
    try:
        made = new_silence(matchers, starts_ns, ends_ns, who or "somebody", why)
    except MatcherError as error:
        raise UserError(str(error)) from None
    if asked.url is not None:
        body = {
            "matchers": list(made.matchers), "starts_unix_ns": starts_ns, "ends_unix_ns": ends_ns,
            "who": made.who, "why": made.why,
        }  # fmt: skip
        row = tell(asked.url, "/api/silences", asked.token, body)
    else:
        with kept(asked) as keeping:
            row = silence_row(keeping.silences.add(made), now_ns)
    _print(row, json)


def end_silence(asked: Asked, number: int, json: bool) -> None:
    """End one, and print it. Raises UserError."""
    if asked.url is not None:
        row = tell(asked.url, f"/api/silences/{number}/end", asked.token, {})
    else:
        now_ns = time.time_ns()
        with kept(asked) as keeping:
            ended = keeping.silences.end(number, now_ns)
        if ended is None:
            raise UserError(f"no silence {number}")
        row = silence_row(ended, now_ns)
    _print(row, json)


def _stored(asked: Asked, every: bool) -> list[Row]:
    now_ns = time.time_ns()
    with known_state(asked_store(asked.store, asked.config)) as state:
        if state is None:
            stderr().print("no service ran with --slo on this store")
            return []
        found = Silences(state).all(0 if every else now_ns)
    return [silence_row(silence, now_ns) for silence in found]


def _print(row: Row, json: bool) -> None:
    if json:
        json_lines([row])
    else:
        draw(_table([row]), stdout())


def _table(rows: Sequence[Row]) -> Table:
    drawn = table(["no.", "state", "matchers", "from", "to", "who"], [])
    drawn.add_column("why", overflow="fold")
    for row in rows:
        cells = [
            str(row["id"]), row["state"], ", ".join(row["matchers"]), moment(row["starts_unix_ns"]),
            moment(row["ends_unix_ns"]), row["who"], row["why"],
        ]  # fmt: skip
        drawn.add_row(*(plain(c, "bold" if row["state"] == "active" else "") for c in cells))
    return drawn
