"""`tailburn incidents`: shown and acted on, in a store or through a running service."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from tailburn.alerts.incidents.acting import Act, Action, ActionError
from tailburn.app.answers.incidents import incident_answer, incident_row
from tailburn.app.answers.question import question
from tailburn.app.asking import ask, ask_one, tell
from tailburn.app.errors import UserError
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.opening import asked_store
from tailburn.app.paging.ways import ways_of
from tailburn.app.standing.words import moment, values_of
from tailburn.app.state import known_state
from tailburn.app.terminal.output import draw, json_lines, stderr, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.incidents import Life
from tailburn.engine.store.state.incidents import Incidents

Row = dict[str, Any]
_MOST: Final = 1_000


@dataclass(frozen=True)
class Asked:
    """A store, or the web port of a service."""

    store: Path | None
    config: Path | None
    url: str | None
    token: str | None

    def __post_init__(self) -> None:
        if self.url is not None and self.store is not None:
            raise UserError("--url asks a running service: no --store")


def show_incidents(asked: Asked, every: bool, since: str | None, json: bool) -> None:
    """Print how incidents stand. Raises UserError."""
    if asked.url is not None:
        parameters = {"all": str(every).lower(), **({} if since is None else {"since": since})}
        rows: Sequence[Row] = ask(asked.url, "/api/incidents", asked.token, parameters)
    else:
        rows = _stored(asked, every, since)
    if json:
        json_lines(rows)
        return
    if rows:
        draw(_incidents_table(rows), stdout())
    else:
        stderr().print("no incident" if every else "no incident is open; --all shows past ones")


def show_incident(asked: Asked, number: int, json: bool) -> None:
    """Print all that is known of one. Raises UserError."""
    row = _one(asked, number)
    if json:
        json_lines([row])
        return
    out = stdout()
    draw(_incidents_table([row]), out)
    draw(_members_table(row["members"]), out)
    draw(_timeline_table(row["timeline"]), out)
    if row["deliveries"]:
        draw(_deliveries_table(row["deliveries"]), out)


def act(asked: Asked, number: int, action: str, who: str | None, text: str, json: bool) -> None:
    """Do something to an incident, and print how it stands then. Raises UserError."""
    by = who or "somebody"
    if asked.url is not None:
        path = f"/api/incidents/{number}/{action}"
        row = tell(asked.url, path, asked.token, {"who": by, "text": text})
    else:
        row = _act_on_store(asked, number, action, by, text)
    if json:
        json_lines([row])
    else:
        draw(_incidents_table([row]), stdout())


def _act_on_store(asked: Asked, number: int, action: str, who: str, text: str) -> Row:
    with kept(asked) as keeping:
        try:
            found = keeping.act(number, Act(Action(action), who, time.time_ns(), text))
        except ActionError as error:
            raise UserError(f"incident {number}: {error}") from None
        if found is None:
            raise UserError(f"no incident {number}")
        return incident_row(found)


@contextmanager
def kept(asked: Asked) -> Iterator[IncidentKeeping]:
    """The incidents of a store. Raises UserError where no service ever ran on it."""
    settings = asked_store(asked.store, asked.config)
    with known_state(settings) as state:
        if state is None:
            raise UserError(f"{settings.store}: no service with SLOs ever ran on this store")
        yield IncidentKeeping((), state, ways_of(settings), time.time_ns)


def _stored(asked: Asked, every: bool, since: str | None) -> list[Row]:
    since_ns = question(since, None, None, (), time.time_ns()).window.since_ns
    settings = asked_store(asked.store, asked.config)
    with known_state(settings) as state:
        if state is None:
            stderr().print("no service ran with --slo on this store")
            return []
        found = Incidents(state).all(since_ns, None if every else True, _MOST)
    return [incident_row(incident) for incident in found]


def _one(asked: Asked, number: int) -> Row:
    if asked.url is not None:
        return ask_one(asked.url, f"/api/incidents/{number}", asked.token)
    with kept(asked) as keeping:
        found = keeping.incidents.one(number)
        if found is None:
            raise UserError(f"no incident {number}")
        return incident_answer(found, keeping.incidents.timeline(number), keeping.of(number))


def _incidents_table(rows: Sequence[Row]) -> Table:
    """A line for each; those that nobody is on stand out."""
    drawn = table(["no.", "life", "severity", "slos", "of", "owner", "opened", "resolved"],
                  ["firing", "alerts"])  # fmt: skip
    for row in rows:
        cells = [
            str(row["id"]), row["life"], row["severity"], ", ".join(row["slos"]),
            values_of(row["where"]), row["owner"], moment(row["opened_ns"]),
            moment(row["resolved_ns"]), str(row["firing"]), str(row["alerts"]),
        ]  # fmt: skip
        drawn.add_row(*(plain(c, "bold" if row["life"] == Life.OPEN else "") for c in cells))
    return drawn


def _members_table(rows: Sequence[Row]) -> Table:
    drawn = table(["severity", "alert", "slo", "objective", "of", "windows", "from", "to"], [])
    for row in rows:
        cells = [
            row["severity"], row["alertname"], row["slo"], row["objective"], values_of(row["by"]),
            f"{row['long']} {row['short']}", moment(row["began_ns"]), moment(row["ended_ns"]),
        ]  # fmt: skip
        drawn.add_row(*map(plain, cells))
    return drawn


def _timeline_table(rows: Sequence[Row]) -> Table:
    drawn = table(["at", "what", "who"], [])
    drawn.add_column("says", overflow="fold")
    for row in rows:
        cells = [moment(row["at_ns"]), row["what"], row["who"], row["text"]]
        drawn.add_row(*map(plain, cells))
    return drawn


def _deliveries_table(rows: Sequence[Row]) -> Table:
    drawn = table(["message", "by", "decided", "got through"], ["tries"])
    drawn.add_column("trouble", overflow="fold")
    for row in rows:
        cells = [
            f"{row['severity']} {row['what']}", row["channel"], moment(row["at_ns"]),
            moment(row["delivered_unix_ns"]), str(row["tries"]), row["error"],
        ]  # fmt: skip
        drawn.add_row(*map(plain, cells))
    return drawn
