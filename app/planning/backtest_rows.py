"""A backtest as plain rows: alerts, budgets, incidents, the score."""

from collections.abc import Iterator
from typing import Any

from tailburn.app.planning.backtesting import Backtest
from tailburn.engine.backtest.fired import Fired
from tailburn.engine.intervals import Bounds


def rows_of(found: Backtest) -> Iterator[dict[str, Any]]:
    """Objects of one `type` after the other; times are ns since the epoch."""
    for begin_ns, end_ns in found.holes:
        yield {"type": "hole", "start_ns": begin_ns, "end_ns": end_ns}
    yield from (_fired_row(one) for one in found.fired)
    for row in found.budgets.itertuples():
        yield {
            "type": "budget",
            "at_ns": int(row.time.value),
            "slo": row.slo,
            "objective": row.objective,
            "by": row.by,
            "requests": int(row.requests),
            "bad": int(row.bad),
            "burn": row.burn,
            "left_ratio": row.left,
        }
    for one in found.score.incidents:
        yield {
            "type": "incident",
            "name": one.marked.name,
            "start_ns": one.marked.start_ns,
            "end_ns": one.marked.end_ns,
            "paged_after_s": None if one.page_after_ns is None else one.page_after_ns / 1e9,
            "ticketed_after_s": None if one.ticket_after_ns is None else one.ticket_after_ns / 1e9,
        }
    yield _score_row(found)


def _fired_row(one: Fired) -> dict[str, Any]:
    key = one.key
    return {
        "type": "alert",
        "alert": key.alertname,
        "severity": key.severity,
        "slo": key.slo,
        "objective": key.objective,
        "long": key.long,
        "short": key.short,
        "by": dict(key.by),
        "start_ns": one.start_ns,
        "end_ns": one.end_ns,
        "why": one.why,
    }


def _score_row(found: Backtest) -> dict[str, Any]:
    score = found.score
    return {
        "type": "score",
        "since_ns": found.since_ns,
        "until_ns": found.until_ns,
        "requests": found.requests,
        "pages": score.pages,
        "tickets": score.tickets,
        "incidents": len(score.incidents),
        "false_pages": len(score.false_pages),
        "false_tickets": len(score.false_tickets),
        "healthy_s": score.healthy_ns / 1e9,
        "precision": _bounds(score.precision),
        "recall": _bounds(score.recall),
        "recall_by_page_or_ticket": _bounds(score.recall_any),
        "false_pages_a_week": _bounds(score.false_a_week),
        "false_tickets_a_week": _bounds(score.false_tickets_a_week),
        "not_judged": list(found.not_judged),
    }


def _bounds(found: Bounds | None) -> list[float] | None:
    """The figure and its interval."""
    return None if found is None else [found.value, found.low, found.high]
