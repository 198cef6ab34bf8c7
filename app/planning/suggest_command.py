"""`tailburn slo suggest`: what is asked, read from the command line, and what is answered."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from tailburn.app.answers.question import question, span_ns
from tailburn.app.errors import UserError
from tailburn.app.opening import asked_store, store_of
from tailburn.app.planning.stored import Span, Stretch, stretch_of
from tailburn.app.planning.suggesting import Suggested, checked_by, suggest
from tailburn.app.slo_files import told, write_documents
from tailburn.app.standing.words import values_of
from tailburn.app.terminal.output import json_lines, stderr
from tailburn.app.terminal.text import harmless
from tailburn.engine.names import VANTAGES
from tailburn.engine.problems import one_of
from tailburn.engine.slo.model import Clock, Tier
from tailburn.engine.slo.parse import parse
from tailburn.engine.slo.quantities import read_percent
from tailburn.engine.store.api import Window
from tailburn.engine.suggest.proposal import Proposal, Thin, Vantage
from tailburn.engine.suggest.quiet import Wanted
from tailburn.engine.suggest.writing import Forecast

_MOST: Final = 0.8
"""Of the requests must have their end at a vantage for it to be chosen unasked."""
_WIDEST: Final = 10.0
_VANTAGES: Final[tuple[Vantage, ...]] = ("client", "gateway", "engine")


@dataclass(frozen=True)
class Asked:
    """The options that say which requests."""

    store: Path | None
    config: Path | None
    since: str | None
    until: str | None
    model: str | None
    where: Sequence[str]
    leave_out: Sequence[str]
    by: str
    vantage: str | None


def answer(asked: Asked, headroom: str, output: Path, *, force: bool, json: bool) -> None:
    """Print or write the documents; thin classes are told on stderr."""
    above = _headroom(headroom)
    by = checked_by(asked.by)
    now_ns = time.time_ns()
    wanted = question(asked.since, asked.until, asked.model, asked.where, now_ns)
    left_out = tuple(span_ns("--except", text, now_ns) for text in asked.leave_out)
    store = store_of(asked_store(asked.store, asked.config))
    stretch = stretch_of(store, wanted.window, wanted.where, _within(left_out, wanted.window))
    fixed = set(wanted.where)
    open_by = tuple(name for name in by if name not in fixed)
    found = suggest(stretch, Wanted(open_by, _vantage(asked.vantage, stretch), above))
    for select, thin in found.thin:
        stderr().print(harmless(_refusal(select, thin)))
    if json:
        json_lines(_rows(found))
    elif found.documents:
        _write(found, output, force)
    if not found.documents:
        raise typer.Exit(1)


def _write(found: Suggested, output: Path, force: bool) -> None:
    problems = parse([(f"{name}.yaml", text) for name, text in found.documents]).problems
    if problems:  # a name in the data that no SLO may have
        raise UserError(*map(told, problems))
    for file in write_documents(output, found.documents, replace=force):
        stderr().print(f"wrote {file}")


def _headroom(text: str) -> float:
    ratio = read_percent(text) if text.endswith("%") else None
    if ratio is None or not 0 < ratio <= _WIDEST:
        raise UserError(f"--headroom {text!r}: want a share such as 10%")
    return ratio


def _within(spans: Sequence[Span], window: Window) -> tuple[Span, ...]:
    """What of these lies in the window."""
    since, until = window.since_ns or 0, window.until_ns or 1 << 63
    return tuple(
        (max(begin, since), min(end, until))
        for begin, end in spans
        if begin < until and end > since
    )


def _vantage(asked: str | None, stretch: Stretch) -> Vantage:
    if asked is None:
        return _outermost(stretch)
    found = next((v for v in _VANTAGES if v == asked), None)
    if found is None:
        raise UserError(f"--vantage {asked!r}: {one_of(asked, VANTAGES)}")
    return found


def _outermost(stretch: Stretch) -> Vantage:
    """The outermost vantage that most requests tell of; where none does, the one of the most."""
    counts = dict.fromkeys(_VANTAGES, 0)
    for rows in stretch.rows([f"e2e_{v}_s" for v in _VANTAGES], "looking for vantages"):
        for vantage in _VANTAGES:
            counts[vantage] += len(rows) - rows[f"e2e_{vantage}_s"].null_count
    most = max(counts.values())
    return next(v for v in _VANTAGES if counts[v] >= _MOST * most)


def _refusal(select: Mapping[str, str], thin: Thin) -> str:
    what = values_of(select) or "all requests"
    return (
        f"{what}: too thin for an SLO: {thin.requests:,} requests with {thin.clock} in "
        f"{thin.hours:,} hours; want {thin.needed_requests:,} (they bound p95 within a tenth) in "
        f"{thin.needed_hours} hours: take a longer --since or fewer --by"
    )


def _rows(found: Suggested) -> Iterator[dict[str, Any]]:
    texts = dict(found.documents)
    for proposal, forecast in zip(found.proposals, found.forecasts, strict=True):
        yield from _quantile_rows(proposal)
        yield _slo_row(proposal, forecast, texts[proposal.slo.name])
    for select, thin in found.thin:
        yield {"type": "thin", "select": dict(select), **vars(thin)}


def _quantile_rows(proposal: Proposal) -> Iterator[dict[str, Any]]:
    for clock, seen in proposal.clocks.items():
        for name, bounds in seen.healthy.items():
            yield {
                "type": "quantile",
                "slo": proposal.slo.name,
                "clock": str(clock),
                "percentile": name,
                "requests": seen.count,
                "value_s": bounds.value,
                "low_s": bounds.low,
                "high_s": bounds.high,
                "acceptable_s": proposal.slo.clocks[Clock(clock)][Tier.ACCEPTABLE][name],
            }


def _slo_row(proposal: Proposal, forecast: Forecast, text: str) -> dict[str, Any]:
    a_month = {
        f"{severity}s_a_month": [bounds.value, bounds.low, bounds.high]
        for severity, bounds in forecast.a_month.items()
    }
    return {
        "type": "slo",
        "slo": proposal.slo.name,
        "select": dict(proposal.slo.select),
        "requests": proposal.seen.requests,
        "hours": len(proposal.seen.hours),
        "availability_ratio": proposal.slo.availability_ratio,
        "goodput_ratio": proposal.slo.goodput_ratio,
        "days": forecast.days,
        **{f"{severity}s": count for severity, count in forecast.events.items()},
        **a_month,
        "document": text,
    }
