"""What the demo says at its end: what burns, which alerts fire, which hop owns it, what is true.

All but the last is what the service makes of what it was told; the last is read from the lab's
truth, which the service never sees.
"""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from tailburn.app.answers.alerts import alert_rows
from tailburn.app.answers.owning import Owned, Suffers, Times, owned_now
from tailburn.app.demo.burn import burn_table, burning
from tailburn.app.demo.compare import owned_table, suffering, tails_compared
from tailburn.app.evaluating import Evaluating
from tailburn.app.minutes import LAG_NS
from tailburn.app.serve import Service
from tailburn.app.standing.alerts import alerts_table
from tailburn.app.standing.words import moment
from tailburn.app.terminal.output import draw
from tailburn.engine.evaluation import Status
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.slo.burn import Severity
from tailburn.lab.run.truth import TRUTH

Row = dict[str, Any]

_PATIENCE_S: Final = 60.0
_STEP_S: Final = 0.25


@dataclass(frozen=True)
class Saying:
    """What the service says of a fleet, and what is true of it."""

    about: Suffers | None
    alerts: list[Row]
    as_of_ns: int | None
    """The last minute that was evaluated; None: none was."""
    owned: Owned | None
    truths: list[Row]

    def rows(self) -> Iterator[Row]:
        """One row for each alert that fires, one for the hop, one for each truth."""
        yield from ({"type": "alert", **row} for row in self.alerts)
        if self.about is not None and self.owned is not None:
            yield {
                "type": "owner", "slo": self.about.slo.name,
                "objective": self.about.objective, "burn": self.about.burn,
                "hop": self.owned.hop, "says": self.owned.says,
            }  # fmt: skip
        yield from ({"type": "truth", **truth} for truth in self.truths)
        yield {"type": "said"}


def say(service: Service, times: Times, now_ns: int, truth: Path, told: Console) -> Saying:
    """Print it in full; the same as data. `truth`: the folder with the lab's."""
    store, evaluating = service.collecting.store, service.evaluating
    told.print("The last five minutes against the hour before:")
    draw(tails_compared(store, times), told)
    told.print("What takes its budget, over the windows of the quickest page:")
    burns = burning(store, service.slos, now_ns)
    draw(burn_table(burns), told)
    alerts, as_of_ns = _firing(evaluating), evaluating.health.minute_ns
    told.print(f"Alerts that fire, as of {moment(as_of_ns)} UTC{':' if alerts else ': none.'}")
    if alerts:
        draw(alerts_table(alerts), told)
    pages = [alert for alert in alerts if alert["severity"] == Severity.PAGE]
    about = suffering(burns, pages)
    owned = None if about is None else owned_now(store, times, about)
    if owned is not None:
        if (drawn := owned_table(owned)) is not None:
            told.print(owned.about)
            draw(drawn, told)
        told.print(owned.says, style="bold")
    return Saying(about, alerts, as_of_ns, owned, truths(truth))


def _firing(evaluating: Evaluating) -> list[Row]:
    fires = (Status.FIRING, Status.FROZEN)
    return [row for row in alert_rows(evaluating.states()) if row["status"] in fires]


def truths(folder: Path) -> list[Row]:
    """What was broken, as the lab wrote it down; without which knobs were turned."""
    told = json.loads((folder / TRUTH).read_text())["truths"]
    return [{name: value for name, value in each.items() if name != "set"} for each in told]


def in_words(truth: Row) -> str:
    """One truth on two lines."""
    where = "; ".join(f"{dim} {', '.join(names)}" for dim, names in truth["affected"].items())
    shows = "" if truth["hop"] == "none" else f"; it shows in {truth['hop']}"
    hits = f"; {where}" if where else ""
    return (
        f"{truth['scenario']}, {truth['cause']} ({truth['severity']}{hits}){shows}."
        f"\nRight to say of it: {truth['verdict']}."
    )


async def until_evaluated(evaluating: Evaluating, now_ns: int) -> None:
    """Wait until alerts are evaluated up to now; not for ever, for the answer says as of when."""
    wanted_ns = (now_ns - LAG_NS) // MINUTE_NS * MINUTE_NS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            while (evaluating.health.minute_ns or 0) < wanted_ns:
                await asyncio.sleep(_STEP_S)
