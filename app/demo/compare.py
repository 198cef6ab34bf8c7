"""Now against the hours before: tails of each service, and which hop owns what got longer."""

from collections.abc import Sequence
from typing import Any, Final

from rich.table import Table

from tailburn.app.answers.owning import Owned, Suffers, Times
from tailburn.app.demo.burn import Burning
from tailburn.app.terminal.tables import band_table, excess_table, table
from tailburn.app.terminal.text import duration, plain
from tailburn.engine.store.api import Store
from tailburn.engine.tails import Tail, tails

CLOCKS_SHOWN: Final = ("ttft_client_s", "ttft_engine_s", "tpot_client_s", "e2e_client_s", "queue_s")
_QUANTILES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


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


def owned_table(owned: Owned) -> Table | None:
    """The parts of what suffers; None where no hop can be named."""
    if owned.excess:
        return excess_table(list(owned.excess))
    return band_table(list(owned.band)) if owned.band else None
