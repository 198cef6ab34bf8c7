"""Which hop owns what a budget suffers from: now against well before, by its own clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tailburn.app.answers.compare import MIX, band_rows, compare_verdict
from tailburn.app.answers.hops import CLOCKS, excess_row_list, verdict
from tailburn.engine.band import BAND_COLUMNS
from tailburn.engine.excess import NEEDED_COLUMNS, OWNER_SHARE, Above, Clock, excess, measure
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import Store, Window

_NS: Final = 1_000_000_000
_BAND_FROM: Final = 0.95
_WHERE: Final = {"ttft": "up to the first token", "decode": "after the first token"}

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Times:
    """The two stretches of receive time that are compared."""

    before: Window
    now: Window


@dataclass(frozen=True)
class Owned:
    """Which hop owns what one budget suffers from; None: none does."""

    hop: str | None
    says: str
    about: str = ""
    """What the rows show."""
    band: Sequence[dict[str, Any]] = ()
    """The parts of what moved the slowest requests."""
    excess: Sequence[dict[str, Any]] = ()
    """The hops of what is over the promise."""


@dataclass(frozen=True)
class Suffers:
    """The promise that is looked into: a budget that burns, or what an alert pages for."""

    slo: Slo
    objective: str
    clock: str | None
    """None: any of them."""
    burn: float | None = None


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
    return Owned(hop, compare_verdict(rows), shows, band=rows)


def _over_promise(store: Store, times: Times, slo: Slo) -> Owned:
    rows = excess_now(store, times, slo)
    if not rows:
        return Owned(None, "Nothing is over its promise: no hop owns any excess.")
    about = f"What is over the promise of {slo.name}, against what was within it:"
    return Owned(rows[-1]["owner"], verdict(rows[-1]), about, excess=rows)


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
