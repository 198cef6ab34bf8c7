"""Now against the hours before: tails of each service, and which hop owns what got longer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from rich.table import Table

from tailburn.app.answers.compare import MIX, band_rows, compare_verdict
from tailburn.app.answers.hops import CLOCKS, excess_row_list, verdict
from tailburn.app.demo.burn import Burning
from tailburn.app.terminal.tables import band_table, excess_table, table
from tailburn.app.terminal.text import duration, plain
from tailburn.engine.band import BAND_COLUMNS
from tailburn.engine.excess import NEEDED_COLUMNS, OWNER_SHARE, Above, Clock, excess, measure
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import Store, Window
from tailburn.engine.tails import Tail, tails

CLOCKS_SHOWN: Final = ("ttft_client_s", "ttft_engine_s", "tpot_client_s", "e2e_client_s", "queue_s")
_NS: Final = 1_000_000_000
_BAND_FROM: Final = 0.95
_WHERE: Final = {"ttft": "up to the first token", "decode": "after the first token"}
_QUANTILES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


@dataclass(frozen=True)
class Times:
    """The two stretches of receive time that are compared."""

    before: Window
    now: Window


def tails_compared(store: Store, times: Times) -> Table:
    """Each service's clocks, before and now, and by how much they grew."""
    columns = [f"{name} {when}" for _, name in _QUANTILES for when in ("before", "now")]
    drawn = table(["model", "clock"], [*columns, "requests"])
    found = {
        when: {
            (tail.group["model"], tail.clock): tail
            for tail in tails(store, window, by=["model"], clocks=CLOCKS_SHOWN)
            if tail.count
        }
        for when, window in (("before", times.before), ("now", times.now))
    }
    for key in sorted(found["now"], key=lambda key: (key[0], CLOCKS_SHOWN.index(key[1]))):
        _add(drawn, key, found["before"].get(key), found["now"][key])
    return drawn


def _add(drawn: Table, key: tuple[str, str], before: Tail | None, now: Tail) -> None:
    cells, worse = [], False
    for q, _ in _QUANTILES:
        old, new = before.value_s(q) if before else None, now.value_s(q)
        worse = worse or bool(old and new and new > 2 * old and new - old > 0.05)
        cells += [duration(old), duration(new)]
    style = "bold" if worse else ""
    model, clock = key
    cells = [model, clock.removesuffix("_s"), *cells, f"{now.count:,}"]
    drawn.add_row(*(plain(cell, style) for cell in cells))


@dataclass(frozen=True)
class Owned:
    """Which hop owns what one budget suffers from; None: none does."""

    hop: str | None
    says: str
    drawn: Table | None = None
    about: str = ""
    """What the table shows."""


@dataclass(frozen=True)
class Suffers:
    """The promise that is looked into: a budget that burns, or what an alert pages for."""

    slo: Slo
    objective: str
    clock: str | None
    """None: any of them."""
    burn: float | None = None


def suffering(burns: Sequence[Burning], pages: Sequence[dict[str, Any]]) -> Suffers | None:
    """The budget that burns fastest; where none burns, but something pages, what it pages for."""
    worst = max(burns, key=lambda each: each.burn or 0.0, default=None)
    if worst is None:
        return None
    slos = {each.slo.name: each.slo for each in burns}
    paged = next((page for page in pages if page["slo"] in slos), None)
    if (worst.burn or 0.0) < 1 and paged is not None:
        return Suffers(slos[paged["slo"]], paged["objective"] or paged["alertname"], None)
    return Suffers(worst.slo, worst.objective.name, worst.objective.clock, worst.burn)


def owned_now(store: Store, times: Times, about: Suffers) -> Owned:
    """By the clock of what suffers.

    For the first token: the requests over the promise against those within it. For anything
    else: the slowest requests now against those of before, to the first token or after it,
    whichever grew more.
    """
    if about.clock == "ttft":
        return _over_promise(store, times, about.slo)
    clocks: Sequence[Clock] = ("decode",) if about.clock == "tpot" else CLOCKS
    now, before = (
        store.requests(window, dict(about.slo.select), columns=BAND_COLUMNS)
        for window in (times.now, times.before)
    )
    found = [rows for clock in clocks if (rows := band_rows(now, before, clock, _BAND_FROM))]
    if not found:
        return Owned(None, "Nothing is measured now that was before: no hop can be named.")
    rows = max(found, key=lambda rows: rows[-1]["effect_ns"])
    parts = [r for r in rows[:-1] if r["hop"] != MIX and (r["share"] or 0.0) >= OWNER_SHARE]
    hop = parts[0]["hop"] if parts and rows[-1]["effect_ns"] > 0 else None
    shows = f"What moved the slowest 5 % of {about.slo.name}, {_WHERE[rows[-1]['clock']]}:"
    return Owned(hop, compare_verdict(rows), band_table(rows), shows)


def _over_promise(store: Store, times: Times, slo: Slo) -> Owned:
    rows = excess_now(store, times, slo)
    if not rows:
        return Owned(None, "Nothing is over its promise: no hop owns any excess.")
    about = f"What is over the promise of {slo.name}, against what was within it:"
    return Owned(rows[-1]["owner"], verdict(rows[-1]), excess_table(rows), about)


def excess_now(store: Store, times: Times, slo: Slo) -> list[dict[str, Any]]:
    """Rows of `hops --slowest`: those over the SLO's first token now, against those well before.

    Empty where nothing is slow now.
    """
    threshold_s = _first_token_s(slo)
    if threshold_s is None:
        return []
    now = store.requests(times.now, dict(slo.select), columns=NEEDED_COLUMNS)
    before = store.requests(times.before, dict(slo.select), columns=NEEDED_COLUMNS)
    both = pa.concat_tables([now, _well(before, threshold_s)])
    found = excess(both, CLOCKS[0], Above(threshold_s))
    return excess_row_list(found) if found.slow and found.rest else []


def _well(requests: pa.Table, threshold_s: float) -> pa.Table:
    """Those whose first token is measured, and not over the threshold."""
    rows = measure(requests, CLOCKS[0])
    return requests.take(rows.row[rows.total_ns <= round(threshold_s * _NS)])


def _first_token_s(slo: Slo) -> float | None:
    return next((each.threshold_s for each in objectives(slo) if each.clock == "ttft"), None)
