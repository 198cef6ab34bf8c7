"""`tailburn change`: told and listed, in a store or through a running service."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tailburn.app.answers.changes import change_row, checked, kind_of
from tailburn.app.answers.question import question
from tailburn.app.asking import ask, tell
from tailburn.app.opening import asked_store
from tailburn.app.standing.incidents import Asked
from tailburn.app.standing.words import moment, values_of
from tailburn.app.state import opened_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.changes import Change
from tailburn.engine.store.state.changes import Changes

Row = dict[str, Any]


@dataclass(frozen=True)
class Telling:
    """A change as typed."""

    kind: str
    what: str
    old: str
    new: str
    where: Sequence[str]
    at: str | None
    link: str
    who: str

    def change(self) -> Change:
        """Raises UserError."""
        now_ns = time.time_ns()
        at_ns = question(self.at, None, None, (), now_ns).window.since_ns
        where = question(None, None, None, self.where, now_ns).where
        return checked(
            Change(
                now_ns if at_ns is None else at_ns, kind_of(self.kind), self.what, self.old,
                self.new, where, self.who, self.link,
            )
        )  # fmt: skip


def add_change(asked: Asked, told: Telling, json: bool) -> None:
    """Write it down, and print it. Raises UserError."""
    change = told.change()
    if asked.url is not None:
        sent = {n: v for n, v in change_row(change).items() if n not in ("id", "tenant")}
        row = tell(asked.url, "/api/changes", asked.token, sent)
    else:
        with opened_state(asked_store(asked.store, asked.config)) as state:
            row = change_row(Changes(state).add(change))
    if json:
        json_lines([row])
    else:
        draw(_table([row]), stdout())


def list_changes(
    asked: Asked, since: str | None, until: str | None, where: Sequence[str], json: bool
) -> None:
    """Print what was done. Raises UserError."""
    if asked.url is not None:
        times = {name: t for name, t in (("since", since), ("until", until)) if t is not None}
        rows = ask(asked.url, "/api/changes", asked.token, {**times, "where": list(where)})
    else:
        wanted = question(since, until, None, where, time.time_ns())
        with opened_state(asked_store(asked.store, asked.config)) as state:
            found = Changes(state).all(wanted.window.since_ns, wanted.window.until_ns, wanted.where)
        rows = [change_row(change) for change in found]
    if json:
        json_lines(rows)
    elif rows:
        draw(_table(rows), stdout())
    else:
        stderr().print("no change was told of; `tailburn change add` tells of one")


def _table(rows: Sequence[Row]) -> Table:
    drawn = table(["at", "kind", "what", "old", "new", "where", "who"], [])
    drawn.add_column("link", overflow="fold")
    for row in rows:
        cells = [
            moment(row["at_ns"]), row["kind"], row["what"], row["old"], row["new"],
            values_of(row["where"]), row["who"], row["link"],
        ]  # fmt: skip
        drawn.add_row(*map(plain, cells))
    return drawn
