"""A proposal as the commented file that `tailburn slo check` accepts."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tailburn.engine.histogram import RELATIVE_ERROR
from tailburn.engine.intervals import Bounds
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import DEFINITIONS, Clock, Mix, Slo, Tier
from tailburn.engine.slo.quantities import time_of, write_percent, write_time
from tailburn.engine.suggest.proposal import CRITICAL, Clocked, Proposal

_NS: Final = 1_000_000_000
_BEHIND: Final = 33  # column of the comments behind values
_WIDE: Final = 58
_TOKENS: Final = {Clock.TTFT: "with a first token", Clock.TPOT: "of 16 output tokens and more"}


@dataclass(frozen=True)
class Forecast:
    """What the proposal would have said of the time it was made of."""

    days: float
    events: Mapping[Severity, int]
    a_month: Mapping[Severity, Bounds]


@dataclass(frozen=True)
class Rested:
    """What a proposal rests on besides its class: the time, and what was left out of it."""

    since_ns: int
    until_ns: int
    hours: int  # of the time, those left out not counted
    left_out: tuple[tuple[int, int], ...]


def document(proposal: Proposal, forecast: Forecast, rested: Rested, headroom: float) -> str:
    """One document: every figure with what was seen."""
    lines = [
        *_heading(proposal, rested),
        "apiVersion: tailburn/v1",
        "kind: ServingSLO",
        "metadata:",
        f"  name: {quoted(proposal.slo.name)}",
        "  # labels: {team: serving}      # `team` is who is paged",
        *_mix(proposal.slo.mix),
        "spec:",
        *_selection(proposal.slo),
        f"  vantage: {proposal.slo.vantage}",
        "  window: 30d",
        *_clocks(proposal, headroom),
        *_shares(proposal),
        *_rest(proposal.slo),
        *_forecast(forecast),
    ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A text as YAML reads it back, whatever is in it."""
    plain = all(c.isascii() and (c.isalnum() or c in "-_./") for c in text)
    if plain and text[:1].isalnum() and text.lower() != "null":
        return text
    return json.dumps(text, ensure_ascii=False)


def _heading(proposal: Proposal, rested: Rested) -> Iterator[str]:
    seen = proposal.seen
    yield "# Suggested by `tailburn slo suggest` from what was healthy:"
    yield f"# {time_of(rested.since_ns)} to {time_of(rested.until_ns)} UTC,"
    yield f"# {seen.requests:,} requests in {len(seen.hours):,} of {rested.hours:,} hours."
    for begin_ns, end_ns in rested.left_out:
        yield f"# Left out: {time_of(begin_ns)} to {time_of(end_ns)}."
    yield "# Bounds are at 95 %, from the binomial of order statistics (David and Nagaraja 2003,"
    yield "# 7.1), which takes requests as independent; the histogram they are read from is within"
    yield f"# {RELATIVE_ERROR:.1%} besides."


def _mix(mix: Mix | None) -> Iterator[str]:
    """Classes of lengths are named by the least tokens in them."""
    if mix is None:
        return
    yield "  mix:                           # of these requests; a notice comes when it has moved"
    yield f"    requests: {mix.requests}"
    for of, shares in mix.shares.items():
        told = ", ".join(
            f"{quoted(name) if of == 'model' else name}: {share:.1%}"
            for name, share in shares.items()
        )
        yield f"    {of}: {{{told}}}"


def _selection(slo: Slo) -> Iterator[str]:
    if slo.select:
        told = ", ".join(f"{name}: {quoted(value)}" for name, value in slo.select.items())
        yield f"  select: {{{told}}}"


def _clocks(proposal: Proposal, headroom: float) -> Iterator[str]:
    yield "  clocks:"
    for clock, found in proposal.clocks.items():
        yield f"    # {clock}: {DEFINITIONS[clock].format(vantage=proposal.slo.vantage)}"
        yield f"    # seen: {found.count:,} requests {_TOKENS.get(clock, 'with an end')}"
        for name, bounds in found.healthy.items():
            low, high = duration(bounds.low), duration(bounds.high)
            yield f"    #   {name} {duration(bounds.value)} ({low} to {high})"
        yield from _hours(found)
        steps = proposal.raised.get(clock, 0)
        if steps:
            yield (
                f"    # acceptable is {headroom * (1 + steps):.0%} above that: with "
                f"{headroom * steps:.0%} an alert would have fired in this time"
            )
        tiers = proposal.slo.clocks[clock]
        behind = {
            Tier.TARGET: "what there is now; shown, nothing more",
            Tier.ACCEPTABLE: f"healthy and {headroom * (1 + steps):.0%}: budgets from p90 on",
            Tier.CRITICAL: f"{CRITICAL:g} times acceptable: past this users leave",
        }
        yield f"    {clock}:"
        for tier, thresholds in tiers.items():
            told = ", ".join(f"{name}: {write_time(s)}" for name, s in thresholds.items())
            yield f"{f'      {tier}: {{{told}}}':{_WIDE}} # {behind[tier]}"


def _hours(found: Clocked) -> Iterator[str]:
    if found.lowest_hour and found.highest_hour:
        (_, low), (at, high) = found.lowest_hour, found.highest_hour
        yield (
            f"    #   p95 of single hours: {duration(low)} to {duration(high)} "
            f"({datetime.fromtimestamp(at // _NS, UTC):%A %H:%M} UTC)"
        )


def _shares(proposal: Proposal) -> Iterator[str]:
    slo, failed = proposal.slo, proposal.failed
    if slo.availability_ratio is not None and failed is not None:
        told = f"  availability: {write_percent(slo.availability_ratio)}"
        bounds = f"({failed.low:.3%} to {failed.high:.3%})"
        yield f"{told:{_BEHIND}} # seen to fail: {failed.value:.3%} {bounds}"
    elif failed is not None:
        yield (
            f"  # availability: none proposed; {failed.value:.2%} failed "
            f"({failed.low:.2%} to {failed.high:.2%}), which is no health"
        )
    if slo.goodput_ratio is not None:
        told = f"  goodput: {write_percent(slo.goodput_ratio)}"
        yield f"{told:{_BEHIND}} # within every acceptable p95, and no failure"


def _rest(slo: Slo) -> Iterator[str]:
    if slo.regression is not None:
        told = f"  regression: {{ratio: {slo.regression.ratio:g}}}"
        yield f"{told:{_BEHIND}} # p99 against the same hour of the last three days"
    yield "  exclude:"
    yield "    cancelled_by_client: before_threshold"
    if slo.exclude.http_status:
        told = f"    http_status: [{', '.join(map(str, slo.exclude.http_status))}]"
        yield f"{told:{_BEHIND}} # the caller's own mistakes, seen in this time"


def _forecast(forecast: Forecast) -> Iterator[str]:
    yield ""
    yield f"# Run against the same {forecast.days:.1f} days, these budgets would have given"
    for severity, count in forecast.events.items():
        bounds = forecast.a_month[severity]
        yield (
            f"#   {severity}s: {count}, so {_few(bounds.value)} a month are to be expected "
            f"({_few(bounds.low)} to {_few(bounds.high)})"
        )
    yield "# Bounds at 95 % of a Poisson count (Garwood 1936). The thresholds were chosen on this"
    yield "# time, so expect rather more than fewer; `tailburn backtest` tells of another."


def _few(count: float) -> str:
    return f"{count:.1f}" if count < 10 else f"{count:.0f}"


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    value, unit = (seconds, "s") if seconds >= 1 else (seconds * 1000, "ms")
    return f"{value:.3g} {unit}"
