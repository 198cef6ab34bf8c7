"""A window against the same one some time before: other requests, or slower hops? Plain rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tailburn.app.answers.hops import CLOCKS, TOTAL
from tailburn.app.answers.question import Question
from tailburn.app.answers.remedies import REMEDIES
from tailburn.engine.band import BAND_COLUMNS, BandChange, band_change
from tailburn.engine.counterfactual import BadShare, bad_share
from tailburn.engine.excess import Clock
from tailburn.engine.store.api import Store

MIX = "mix"


def compare_rows(
    store: Store, question: Question, ago_ns: int, q: float, threshold_s: float | None
) -> list[dict[str, Any]]:
    """Per clock: what moved the mean of the band from the quantile `q` on, the total last.

    With a threshold, for the time to the first token, also what each hop has of the requests
    over it. `question.window` must have both ends. Raises StoreError.
    """
    now, before = _requests(store, question), _requests(store, question.earlier(ago_ns))
    rows = [row for clock in CLOCKS for row in _band_rows(now, before, clock, q)]
    if threshold_s is not None:
        rows += _bad_rows(bad_share(now, before, CLOCKS[0], threshold_s))
    return rows


def _requests(store: Store, question: Question) -> pa.Table:
    return store.requests(question.window, question.where, columns=BAND_COLUMNS)


def _band_rows(now: pa.Table, before: pa.Table, clock: Clock, q: float) -> list[dict[str, Any]]:
    found = band_change(now, before, clock, q)
    if found is None:
        return []
    parts = [(MIX, found.mix_ns), *((hop.hop, hop.effect_ns) for hop in found.hops)]
    common = {"what": "band", "clock": clock, "count": found.band.count}
    rows = [
        {**common, "hop": name, "effect_ns": ns, "share": _share(ns, found)} for name, ns in parts
    ]
    total = {
        "effect_ns": found.change_ns,
        "share": 1.0 if found.change_ns else None,
        "baseline_count": found.baseline.count,
        "from_s": found.band.from_ns / 1e9,
        "baseline_from_s": found.baseline.from_ns / 1e9,
        "mean_s": found.band.mean_ns / 1e9,
        "baseline_mean_s": found.baseline.mean_ns / 1e9,
    }
    return [*rows, {**common, "hop": TOTAL, **total}]


def _share(ns: int, found: BandChange) -> float | None:
    return ns / found.change_ns if found.change_ns else None


def _bad_rows(found: BadShare | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    common = {"what": "bad", "clock": found.clock, "count": found.count, "bad": found.bad}
    rows = [
        {
            **common,
            "hop": hop.hop,
            "cured": hop.cured,
            "shapley": float(hop.shapley),
            "share": float(hop.shapley) / found.bad if found.bad else None,
            "lower_bound": hop.is_lower_bound,
        }
        for hop in found.hops
    ]
    total = {
        "cured": found.cured_by_all,
        "shapley": float(found.cured_by_all),
        "share": found.cured_by_all / found.bad if found.bad else None,
        "baseline_bad_ratio": found.baseline_bad_ratio,
    }
    return [*rows, {**common, "hop": TOTAL, **total}]


def compare_verdict(rows: Sequence[dict[str, Any]]) -> str:
    """What moved the band, and where to look next, from the rows of one clock."""
    total, parts = rows[-1], rows[:-1]
    if total["effect_ns"] <= 0:
        return "The slow band is no slower than it was."
    most = max(parts, key=lambda row: row["effect_ns"])
    if most["share"] < 0.5:
        return "Nothing alone is half of the change. Look next: the two largest."
    if most["hop"] == MIX:
        return (
            "Other requests than before are most of the change (model, prompt and output length, "
            "streaming): alike requests take about as long as they did."
        )
    remedy = REMEDIES.get(most["hop"], "one slow trace, with `tailburn trace`")
    return f"{most['hop']} is most of the change. Look next: {remedy}."
