"""`tailburn doctor`: every check in turn, then the worst as exit code."""

import sys
from collections.abc import Callable, Iterator
from typing import Final

from tailburn.app.doctor import alerts, machine, mixes, pair, state, store, targets
from tailburn.app.doctor.finding import Finding, State
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import json_lines, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain

CHECKS: Final[tuple[Callable[[Settings], Iterator[Finding]], ...]] = (
    machine.ports,
    machine.disk,
    machine.permissions,
    machine.clock,
    store.lock,
    state.database,
    store.arrivals,
    alerts.alerts,
    pair.pair,
    mixes.mixes,
    targets.targets,
)
_STYLES: Final = {State.OK: "green", State.WARN: "yellow", State.BAD: "red", State.NO_DATA: "dim"}


def examine(settings: Settings, json: bool) -> None:
    """Print all findings; exit with 1 where one is bad."""
    findings = [finding for check in CHECKS for finding in check(settings)]
    if json:
        json_lines(finding.row() for finding in findings)
    else:
        drawn = table(["", "what", "seen", "what to do"])
        for finding in findings:
            drawn.add_row(
                plain(finding.state, _STYLES[finding.state]),
                *map(plain, (finding.subject, finding.seen, finding.todo)),
            )
        stdout().print(drawn)
    if any(finding.state is State.BAD for finding in findings):
        sys.exit(1)
