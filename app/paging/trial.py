"""`tailburn page test`: a page through each way of the settings, and where it stopped."""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import typer

from tailburn.alerts.pager.alertmanager import Alertmanager, Sent
from tailburn.alerts.pager.http import TIMEOUT_S
from tailburn.alerts.pager.page import Channel, DeliveryError, Page
from tailburn.alerts.pager.text import clock
from tailburn.app.errors import UserError
from tailburn.app.paging.channels import People, people_of
from tailburn.app.settings_sources import load_settings
from tailburn.app.terminal.output import draw, json_lines, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.engine.incidents import What
from tailburn.engine.names import SEVERITY_LABEL, SLO_LABEL
from tailburn.engine.slo.burn import Severity

ALERTNAME: Final = "TailburnTest"
_TITLE: Final = "A test page of tailburn: nothing burns"
_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class Tried:
    """How far a page came by one way."""

    way: str
    step: str
    ok: bool
    says: str = ""

    def row(self) -> dict[str, Any]:
        return vars(self)


def try_paging(config: Path | None, severity: Severity, json: bool) -> None:
    """Print how far it came; ends with 1 where a way stopped. Raises UserError."""
    people = people_of(load_settings({}, config))
    if not (people.channels or people.alertmanagers):
        raise UserError(
            "nobody is told: none of alertmanagers, page_to and ticket_to is in the settings"
        )
    try:
        found = list(_tried(people, severity))
    finally:
        people.close()
    if json:
        json_lines([one.row() for one in found])
    else:
        draw(_table(found), stdout())
    if not all(one.ok for one in found):
        raise typer.Exit(1)


def _tried(people: People, severity: Severity) -> Iterator[Tried]:
    for channel in people.channels:
        yield from _by_channel(channel, severity)
    for one in people.alertmanagers:
        yield from _by_alertmanager(one, severity)


def _by_channel(channel: Channel, severity: Severity) -> Iterator[Tried]:
    """Begun, and over at once: nobody has to close it by hand."""
    key = f"tailburn-test-{uuid.uuid4().hex}"
    now_ns = time.time_ns()
    page = Page(
        key, f"{key}-{What.TRIGGER}", What.TRIGGER, severity, _TITLE, _text(now_ns), now_ns, now_ns,
        {SLO_LABEL: "test"},
    )  # fmt: skip
    over = replace(page, id=f"{key}-{What.RESOLVE}", what=What.RESOLVE, title=f"Over: {_TITLE}")
    for each in (page, over):
        try:
            channel.send(each)
        except DeliveryError as error:
            yield Tried(channel.name, str(each.what), False, str(error))
            return
        yield Tried(channel.name, str(each.what), True, "the receiver has it")


def _by_alertmanager(one: Alertmanager, severity: Severity) -> Iterator[Tried]:
    now_ns = time.time_ns()
    labels = {"alertname": ALERTNAME, SEVERITY_LABEL: str(severity), SLO_LABEL: "test"}
    alert = Sent(
        labels, {"summary": _TITLE, "description": _text(now_ns)}, now_ns, now_ns + 60 * _NS
    )
    try:
        one.post([alert], now_ns)
    except DeliveryError as error:
        yield Tried(one.name, "post", False, str(error))
        return
    yield Tried(one.name, "post", True, "Alertmanager has it, for a minute")
    yield _where_to(one)


def _where_to(one: Alertmanager) -> Tried:
    """To whom Alertmanager itself says that it goes."""
    try:
        answer = httpx.get(
            f"{one.name}/api/v2/alerts", params={"filter": f'alertname="{ALERTNAME}"'},
            timeout=TIMEOUT_S,
        )  # fmt: skip
        (alert, *_) = answer.json()
        receivers = [each["name"] for each in alert["receivers"]]
        status = alert["status"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return Tried(one.name, "route", False, f"it does not say where it goes: {error}")
    if status["silencedBy"] or status["inhibitedBy"]:
        why = "a silence" if status["silencedBy"] else "another alert"
        return Tried(one.name, "route", False, f"{why} keeps it back")
    return Tried(one.name, "route", True, f"it goes to {', '.join(receivers)}")


def _text(now_ns: int) -> str:
    return f"Sent by `tailburn page test` at {clock(now_ns)}. There is nothing to do."


def _table(found: Sequence[Tried]) -> Any:
    drawn = table(["way", "step", "came through"], [])
    drawn.add_column("says", overflow="fold")
    for one in found:
        style = "" if one.ok else "bold"
        cells = [one.way, one.step, "yes" if one.ok else "NO", one.says]
        drawn.add_row(*(plain(cell, style) for cell in cells))
    return drawn
