"""Now against the hours before: tails of each service, and which hop owns what got longer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from rich.table import Table

from tailburn.app.answers.hops import CLOCKS, excess_row_list, verdict
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import duration, plain
from tailburn.engine.excess import NEEDED_COLUMNS, Above, excess, measure
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import Store, Window
from tailburn.engine.tails import Tail, tails

CLOCKS_SHOWN: Final = ("ttft_client_s", "ttft_engine_s", "tpot_client_s", "e2e_client_s", "queue_s")
_NS: Final = 1_000_000_000
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


def says(rows: Sequence[dict[str, Any]]) -> str:
    """Who owns the excess and what to look at next."""
    return verdict(rows[-1]) if rows else "Nothing is over its promise: no hop owns any excess."
