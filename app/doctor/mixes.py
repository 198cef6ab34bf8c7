"""Whether requests are still those that the SLOs were made of."""

import time
from collections.abc import Iterator

from tailburn.app.answers.mixes import mix_rows, told
from tailburn.app.doctor.finding import Finding, State
from tailburn.app.errors import UserError
from tailburn.app.opening import store_of
from tailburn.app.settings import Settings
from tailburn.app.slo_files import load_slos
from tailburn.engine.slo.mix import MINIMUM_COUNT, Verdict
from tailburn.engine.store.api import StoreError

_TODO = "see whether the thresholds still fit: `tailburn slo suggest` makes them anew"


def mixes(settings: Settings) -> Iterator[Finding]:
    """A line for each SLO that `tailburn slo suggest` made, or none."""
    try:
        slos = [slo for slo in load_slos(settings.slo) if slo.mix is not None]
    except UserError as error:
        for line in error.lines:
            yield Finding("SLOs", State.BAD, line, "mend it: the service would not start")
        return
    if not slos or not (settings.store / "requests").is_dir():
        return
    try:
        rows = mix_rows(store_of(settings), slos, time.time_ns())
    except StoreError as error:
        yield Finding("mix of requests", State.BAD, str(error), "move the damaged file away")
        return
    for slo in slos:
        of_slo = [row for row in rows if row["slo"] == slo.name]
        yield _finding(f"mix of {slo.name}", of_slo)


def _finding(subject: str, rows: list[dict[str, object]]) -> Finding:
    moved = [told(row) for row in rows if row["verdict"] == Verdict.MOVED]
    if moved:
        return Finding(subject, State.WARN, "; ".join(moved), _TODO)
    thin = [row for row in rows if row["verdict"] == Verdict.THIN]
    if thin:
        seen = f"fewer than {MINIMUM_COUNT} requests a day tell {thin[0]['of']}"
        return Finding(subject, State.NO_DATA, seen)
    return Finding(subject, State.OK, "requests of the last day are like those it was made of")
