"""The files of `tailburn alerts`: made from SLOs, checked by amtool, written whole."""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

from tailburn.alerts.alertmanager import amtool
from tailburn.alerts.alertmanager.config import Theirs, configuration, secret_files
from tailburn.alerts.alertmanager.delivery import Delivery, Kind, delivery
from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.inhibition import ALERTNAME
from tailburn.alerts.alertmanager.template import TEMPLATE_FILE, template
from tailburn.alerts.alertmanager.theirs import labels_routed_by, receivers_of_ours
from tailburn.app.errors import UserError
from tailburn.app.slo_files import write_whole
from tailburn.app.terminal.text import harmless
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Slo
from tailburn.rules.ruleset import alerts_of

DEFAULTS = {Severity.PAGE: Kind.PAGERDUTY, Severity.TICKET: Kind.SLACK}


@dataclass(frozen=True)
class Arrival:
    """Where alerts that differ in nothing that a route sees go."""

    labels: Mapping[str, str]
    receivers: tuple[str, ...]
    is_stray: bool  # no receiver of our routes gets it

    def __str__(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in self.labels.items())
        return harmless(f"{told} -> {', '.join(self.receivers)}")


def deliveries(pages: Sequence[str], tickets: Sequence[str]) -> tuple[Delivery, ...]:
    """The ways as given; teams without their own get the default. Raises UserError."""
    with _told_to_users():
        given = [
            *(delivery(Severity.PAGE, way) for way in pages),
            *(delivery(Severity.TICKET, way) for way in tickets),
        ]
    for_all = {d.severity for d in given if not d.team}
    default = [Delivery(s, "", kind) for s, kind in DEFAULTS.items() if s not in for_all]
    return (*given, *default)


def render(
    slos: Sequence[Slo],
    ways: Sequence[Delivery],
    into: Path | None,
    secrets: str,
    smarthost: str,
    out: str,
) -> dict[Path, str]:
    """Path and text of what is to be written: configuration and templates.

    Raises UserError, also with what amtool refuses where it is installed.
    """
    with _told_to_users():
        theirs = None if into is None else _theirs(into)
        text = configuration(slos, ways, theirs, secrets, smarthost)
        if (found := amtool.find_amtool()) is None:
            typer.echo(f"not checked: amtool is missing; {amtool.HOW_TO_GET}", err=True)
        else:
            amtool.check_config(found, text, str(into or out))
    if out == "-":
        return {Path("-"): text}
    return {Path(out): text, Path(out).with_name(TEMPLATE_FILE): template()}


def differing(files: Mapping[Path, str]) -> list[str]:
    """A line for each file that is missing or out of date."""
    lines = []
    for path, text in files.items():
        try:
            is_same = path.read_bytes() == text.encode()
        except FileNotFoundError:
            lines.append(f"{path}: is missing")
        except OSError as error:
            raise UserError(f"{path}: can't be read: {error.strerror}") from error
        else:
            if not is_same:
                lines.append(f"{path}: is out of date")
    return lines


def write(files: Mapping[Path, str]) -> None:
    """Each file whole; the templates first, which the configuration names."""
    for path, text in reversed(list(files.items())):
        write_whole(path, text)


def secrets_wanted(ways: Sequence[Delivery], secrets: str) -> list[str]:
    """The files that Alertmanager will read and that we never write."""
    return secret_files(ways, secrets)


def arrivals(config: Path, slos: Sequence[Slo]) -> Iterator[Arrival]:
    """Where the alerts of these SLOs go, by amtool; each set of labels that routes tell apart once.

    Raises UserError where amtool is missing.
    """
    found = amtool.find_amtool()
    if found is None:
        raise UserError(f"amtool is missing; {amtool.HOW_TO_GET}")
    with _told_to_users():
        theirs = _theirs(config)
        ours = receivers_of_ours(theirs.text, theirs.file)
        asked = _told_apart(slos, labels_routed_by(theirs.text, theirs.file))
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a program
            answers = pool.map(partial(amtool.receivers_of, found, config), asked)
            for labels, receivers in zip(asked, answers, strict=True):
                yield Arrival(labels, receivers, ours.isdisjoint(receivers))


def _told_apart(slos: Sequence[Slo], looked_at: Set[str]) -> list[dict[str, str]]:
    names = {ALERTNAME, *looked_at}
    fire = ({ALERTNAME: str(a.kind), **a.labels} for slo in slos for a in alerts_of(slo))
    seen = (tuple((name, v) for name, v in labels.items() if name in names) for labels in fire)
    return [dict(labels) for labels in dict.fromkeys(seen)]


def _theirs(into: Path) -> Theirs:
    try:
        # newline="": the ends of lines are the user's, too.
        with into.open(encoding="utf-8", newline="") as stream:
            return Theirs(str(into), stream.read())
    except OSError as error:
        raise UserError(f"{into}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{into}: is not UTF-8: {error.reason}") from error


@contextmanager
def _told_to_users() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise UserError(*map(harmless, error.lines)) from error
