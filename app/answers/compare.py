"""A window against the same one some time before: other requests, or slower hops? Plain rows."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tailburn.app.answers.hops import CLOCKS, TOTAL
from tailburn.app.answers.question import Question
from tailburn.app.answers.remedies import REMEDIES
from tailburn.engine.band import BAND_COLUMNS, BandChange, band_change
from tailburn.engine.batching import LEAST_GROWTH, TRADE_COLUMNS, trade_off
from tailburn.engine.counterfactual import QUEUE, BadShare, bad_share, queue_burn
from tailburn.engine.excess import Clock
from tailburn.engine.grouping import numbers, weights
from tailburn.engine.store.api import Store

MIX = "mix"
PARTS: Final = 60
_COLUMNS: Final = tuple(dict.fromkeys((*BAND_COLUMNS, *TRADE_COLUMNS, "received_ns")))


def compare_rows(
    store: Store,
    question: Question,
    ago_ns: int,
    q: float,
    threshold_s: float | None,
    budget_ratio: float,
) -> list[dict[str, Any]]:
    """Per clock: what moved the mean of the band from the quantile `q` on, the total last.

    With a threshold, for the time to the first token, also what each hop has of the requests
    over it, and the queue's part over time. Last a row if throughput was bought with delay.
    `question.window` must have both ends. Raises StoreError.
    """
    now, before = _requests(store, question), _requests(store, question.earlier(ago_ns))
    rows = [row for clock in CLOCKS for row in band_rows(now, before, clock, q)]
    if threshold_s is not None:
        rows += _bad_rows(bad_share(now, before, CLOCKS[0], threshold_s), _demand(now, before))
        rows += _queue_rows(now, before, question, threshold_s, budget_ratio)
    trade = trade_off(now, before)
    if trade is not None:
        rows.append({"what": "batching", "p95_ratio": trade.p95_ratio, **asdict(trade)})
    return rows


def _requests(store: Store, question: Question) -> pa.Table:
    return store.requests(question.window, question.where, columns=_COLUMNS)


def _demand(now: pa.Table, before: pa.Table) -> dict[str, float | None]:
    """Requests, and tokens asked of the engines, over what they were; None where not told."""
    (requests, tokens), (old_requests, old_tokens) = _asked(now), _asked(before)
    return {
        "requests_ratio": requests / old_requests if old_requests else None,
        "tokens_ratio": tokens / old_tokens if old_tokens else None,
    }


def _asked(requests: pa.Table) -> tuple[float, float]:
    weight = weights(requests)
    prompt, cached, output = (
        numbers(requests[name], 0.0) for name in ("prompt_tokens", "cached_tokens", "output_tokens")
    )
    return float(weight.sum()), float(weight @ (np.maximum(prompt - cached, 0.0) + output))


def _queue_rows(
    now: pa.Table, before: pa.Table, question: Question, threshold_s: float, budget_ratio: float
) -> Iterator[dict[str, Any]]:
    """The budget of the window as it burns down: by all, and by the queue alone."""
    window = question.window
    assert window.since_ns is not None and window.until_ns is not None
    edges = np.linspace(window.since_ns, window.until_ns, PARTS + 1).astype(np.int64)
    parts = queue_burn(now, before, CLOCKS[0], threshold_s, edges)
    allowed = budget_ratio * sum(part.count for part in parts)
    bad = queued = 0
    for part in parts:
        bad, queued = bad + part.bad, queued + part.queued
        yield {
            "what": "queue",
            **asdict(part),
            "left_ratio": 1 - bad / allowed if allowed else None,
            "queue_left_ratio": 1 - queued / allowed if allowed else None,
        }


def band_rows(now: pa.Table, before: pa.Table, clock: Clock, q: float) -> list[dict[str, Any]]:
    """What moved the mean of the band of one clock, the total last; empty: nothing measured."""
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


def _bad_rows(found: BadShare | None, demand: dict[str, float | None]) -> list[dict[str, Any]]:
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
        "lower_bound": found.is_lower_bound,
        "owner": found.owner,
        **demand,
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


def replicas_verdict(rows: Sequence[dict[str, Any]]) -> str:
    """Whether more replicas would help, from the rows of the requests over a threshold.

    They do where the queue owns the miss; where it grew under the same demand it is a symptom.
    """
    total = rows[-1]
    if not total["bad"]:
        return "Nothing missed: no replicas are wanted."
    queue = next((row["share"] for row in rows if row["hop"] == QUEUE), 0.0)
    if total["owner"] != QUEUE:
        return f"More replicas would not cure it: the queue has {queue:.0%} of the miss."
    grown = [ratio for name in ("requests_ratio", "tokens_ratio") if (ratio := total[name])]
    if grown and max(grown) < LEAST_GROWTH:
        return (
            f"The queue owns the miss ({queue:.0%}), and no more is asked for than before: it is a "
            "symptom. Look first at what slowed the engines (prefill, decode, a replica gone); "
            "more replicas only relieve it."
        )
    return f"The queue owns the miss ({queue:.0%}) and more is asked for: add replicas."


def batching_note(row: dict[str, Any]) -> str:
    """Throughput bought with delay, in words."""
    told = f"tokens/s x {row['tokens_ratio']:.2f}"
    if row["per_replica_ratio"] is not None:
        told += f", x {row['per_replica_ratio']:.2f} for each replica that served"
    return (
        f"Throughput bought with delay: p95 of the first token x {row['p95_ratio']:.2f} "
        f"({row['vantage']}) and {told}, at x {row['requests_ratio']:.2f} requests: the batch "
        "grew. Look next: max_num_seqs and other limits of the batch, replicas saved, longer "
        "answers."
    )
