"""`tailburn baselines`: what is usual, and how it is now."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tailburn.app.answers.baselines import baseline_rows
from tailburn.app.answers.baselines_asked import Asked, asked_for
from tailburn.app.answers.question import question
from tailburn.app.asking import ask
from tailburn.app.errors import UserError
from tailburn.app.incidents import fired_lately
from tailburn.app.opening import asked_store, store_of
from tailburn.app.settings import Settings
from tailburn.app.standing.words import moment
from tailburn.app.state import known_state
from tailburn.app.terminal.baselines_text import print_baselines
from tailburn.app.terminal.output import json_lines, stderr
from tailburn.engine.baseline import Incident
from tailburn.engine.store.api import Store, StoreError
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.versions import Versions

_NEWEST: Final = "SELECT max(received_ns) FROM requests"


@dataclass(frozen=True)
class Options:
    """What is asked, as typed."""

    by: str
    clock: str
    over: str
    until: str | None
    model: str | None
    where: Sequence[str]

    def asked(self, now_ns: int) -> Asked:
        """Raises UserError for what is no time, name or filter."""
        found = question(None, self.until, self.model, self.where, now_ns)
        at_ns = found.window.until_ns or now_ns
        return asked_for(at_ns, self.over, self.by, self.clock, found.where)

    def parameters(self) -> dict[str, str | list[str]]:
        """The same, for a service."""
        typed: dict[str, str | list[str]] = {"by": self.by, "clock": self.clock, "over": self.over}
        for name, value in (("until", self.until), ("model", self.model)):
            if value is not None:
                typed[name] = value
        return {**typed, "where": list(self.where)}


def show_baselines(
    store: Path | None,
    config: Path | None,
    url: str | None,
    token: str | None,
    options: Options,
    json: bool,
) -> None:
    """Print what is usual of each series, and what is now. Raises UserError."""
    if url is not None and store is not None:
        raise UserError("--url asks a running service: no --store")
    if url is not None:
        rows = ask(url, "/api/baselines", token, options.parameters())
    else:
        rows = _stored(asked_store(store, config), options)
    if json:
        json_lines(rows)
    elif not rows:
        stderr().print("no data: nothing that fits was measured now, nor in this hour of 3 days")
    else:
        print_baselines(rows, options.over)


def _stored(settings: Settings, options: Options) -> list[dict[str, Any]]:
    asked, store = options.asked(time.time_ns()), store_of(settings)
    try:
        rows = baseline_rows(store, asked, _fired(settings, asked.now_ns))
        if not any(row["now"]["requests"] for row in rows):
            _say_newest(store)
    except StoreError as error:
        raise UserError(str(error)) from None
    return rows


def _say_newest(store: Store) -> None:
    newest_ns = store.query(_NEWEST).column(0)[0].as_py()
    if newest_ns is not None:
        told = moment(newest_ns)
        stderr().print(
            f"nothing that fits came lately; the newest request closed {told} UTC: "
            f"--until looks at an earlier time"
        )


def _fired(settings: Settings, now_ns: int) -> list[Incident] | None:
    with known_state(settings) as state:
        return None if state is None else fired_lately(Alerts(state), Versions(state), now_ns)
