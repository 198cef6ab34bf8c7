"""Where the time went, per hop: plain, or the slow share against the rest. Plain rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tailburn.app.answers.question import Question
from tailburn.app.answers.remedies import REMEDIES
from tailburn.engine.excess import NEEDED_COLUMNS, Clock, Excess, Slowest, breakdown, excess
from tailburn.engine.store.api import Store

CLOCKS: Sequence[Clock] = ("ttft", "decode")
TOTAL = "total"


def hop_rows(store: Store, question: Question) -> list[dict[str, Any]]:
    """Per clock a row for each hop that took time, and one for the total. Raises StoreError."""
    requests = _requests(store, question)
    return [row for clock in CLOCKS for row in _breakdown_rows(requests, clock)]


def excess_rows(store: Store, question: Question, share: float) -> list[dict[str, Any]]:
    """Per clock a row for each hop's part in what the slowest `share` took longer.

    The parts add up to the total exactly. Raises StoreError.
    """
    requests = _requests(store, question)
    return [
        row for clock in CLOCKS for row in excess_row_list(excess(requests, clock, Slowest(share)))
    ]


def verdict(total: dict[str, Any]) -> str:
    """Who owns the excess and what to do next, from the total row of a clock."""
    if not total["slow"] or not total["rest"]:
        return "Too few requests to tell slow ones from the rest."
    if total["excess_ns"] <= 0:
        return "The slow ones took no longer than the rest of their prompt length."
    if total["owner"] is None:
        return (
            "No single hop owns half of the excess. "
            "Look next: the two largest, then one slow trace."
        )
    where = " after the first token" if total["clock"] == "decode" else ""
    return f"{total['owner']} owns the excess{where}. Look next: {REMEDIES[total['owner']]}."


def _requests(store: Store, question: Question) -> pa.Table:
    return store.requests(question.window, question.where, columns=NEEDED_COLUMNS)


def _breakdown_rows(requests: pa.Table, clock: Clock) -> list[dict[str, Any]]:
    found = breakdown(requests, clock)
    common = {"clock": clock, "count": found.count}
    rows = [
        {
            **common,
            "hop": hop.hop,
            "total_ns": hop.total_ns,
            "mean_s": hop.mean_s,
            "median_s": hop.median_s,
            "share": hop.share,
        }
        for hop in found.hops
    ]
    total = {
        "total_ns": found.total_ns,
        "mean_s": found.mean_s,
        "median_s": found.median_s,
        "share": 1.0 if found.count else None,
        "unmeasured": found.unmeasured,
    }
    return [*rows, {**common, "hop": TOTAL, **total}]


def excess_row_list(found: Excess) -> list[dict[str, Any]]:
    """A row for each hop's part of an excess, the total last."""
    common = {"clock": found.clock, "slow": found.slow, "rest": found.rest}
    rows = [
        {
            **common,
            "hop": hop.hop,
            "excess_ns": hop.excess_ns,
            "excess_s": hop.excess_s,
            "share": hop.share,
            "slow_mean_s": hop.slow_mean_s,
            "baseline_mean_s": hop.baseline_mean_s,
            "clock_error_s": hop.clock_error_s,
            "owns": hop.hop == found.owner,
        }
        for hop in found.hops
    ]
    total = {
        "excess_ns": found.excess_ns,
        "excess_s": found.excess_s,
        "share": 1.0 if found.excess_ns > 0 else None,
        "unmeasured": found.unmeasured,
        "fastest_slow_s": found.fastest_slow_s,
        "owner": found.owner,
    }
    return [*rows, {**common, "hop": TOTAL, **total}]
