"""Thresholds a little above what was healthy, and shares a little below.

A healthy percentile is known only within an interval: the threshold is that interval's upper end
and some headroom on top, rounded up to two digits that people say. What is too thin to know is
not proposed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tailburn.engine.intervals import Bounds, share
from tailburn.engine.slo.model import (
    QUANTILES,
    Clock,
    Exclude,
    Kind,
    Place,
    Regression,
    Slo,
    Tier,
)
from tailburn.engine.suggest.seen import Class

LEAST: Final = {"p50": 390, "p95": 1_100, "p99": 3_430}
"""Requests that bound a percentile within a tenth, 95 of 100 times (lognormal, sigma 0.8)."""
LEAST_HOURS: Final = 24
LEAST_SHARE: Final = 0.5  # of a class must have a clock for it to be promised
HEADROOM: Final = 0.1
CRITICAL: Final = 2.0  # times acceptable
AVAILABILITY: Final = (0.9999, 0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9)
GOODPUT: Final = (0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.92, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
LEAST_BAD: Final = 10  # bad requests that a month's budget must hold, or one spoils it
MONTH_DAYS: Final = 30.0
_ROUND_FROM: Final = 5.0
_LONGEST_NAME: Final = 100
_DUST: Final = 1e-12

Vantage = Literal["client", "gateway", "engine"]


@dataclass(frozen=True)
class Thin:
    """Why a class gets no SLO: what is there and what it takes."""

    requests: int
    hours: int
    needed_requests: int = LEAST["p95"]
    needed_hours: int = LEAST_HOURS
    clock: Clock | None = None  # the one that the most requests have


@dataclass(frozen=True)
class Clocked:
    """What was healthy of one clock, by percentile, and how the hours differed at p95."""

    count: int
    healthy: Mapping[str, Bounds]  # seconds; those that enough requests bound
    lowest_hour: tuple[int, float] | None  # ns, p95 in s
    highest_hour: tuple[int, float] | None


@dataclass(frozen=True)
class Proposal:
    """The SLO of one class, and what it rests on."""

    slo: Slo
    seen: Class
    clocks: Mapping[Clock, Clocked]
    failed: Bounds | None  # share of the requests that failed
    raised: Mapping[str, int]  # steps more by what fired in health: a clock, or `Kind` of share


def thin(one: Class) -> Thin | None:
    """Why too little is known of a class; None where it is enough."""
    most = max(one.times, key=lambda clock: one.times[clock].count)
    count = one.times[most].count
    if count >= LEAST["p95"] and len(one.hours) >= LEAST_HOURS:
        return None
    return Thin(count, len(one.hours), clock=most)


def propose(
    one: Class,
    name: str,
    select: Mapping[str, str],
    vantage: Vantage,
    headroom: float,
    raised: Mapping[str, int],
) -> Proposal:
    """The SLO of a class that is not thin; goodput is left for `with_goodput`.

    `raised`: steps of headroom more by clock, and steps down the ladders of the shares.
    """
    clocks = {clock: _clocked(one, clock) for clock in promised(one)}
    tiers = {
        clock: _tiers(found, headroom * (1 + raised.get(clock, 0)))
        for clock, found in clocks.items()
    }
    done = one.outcomes["ok"] + one.outcomes["error"]
    failed = share(one.outcomes["error"], done)
    slo = Slo(
        name,
        Place("", 0),
        select=dict(select),
        vantage=vantage,
        clocks=tiers,
        availability_ratio=_availability(one, failed, raised.get(Kind.AVAILABILITY, 0)),
        goodput_ratio=GOODPUT[-1],
        regression=Regression() if Clock.TTFT in clocks or Clock.TPOT in clocks else None,
        exclude=Exclude(http_status=tuple(sorted(one.mistakes))),
        mix=one.mixed.mix(select),
    )
    return Proposal(slo, one, clocks, failed, dict(raised))


def with_goodput(proposal: Proposal, bad: int, count: int) -> Proposal:
    """Goodput from how many of the same requests would have missed what is proposed."""
    found = share(bad, count)
    wanted = 1.0 if found is None else max(found.high, found.value * (1 + HEADROOM))
    ratio = _rung(GOODPUT, wanted, proposal.raised.get(Kind.GOODPUT, 0))
    return replace(proposal, slo=replace(proposal.slo, goodput_ratio=ratio))


def promised(one: Class) -> tuple[Clock, ...]:
    """The clocks to promise: first token and pace; the end where either of them is no clock."""
    enough = [
        clock
        for clock, times in one.times.items()
        if times.count >= LEAST["p95"] and one.measured_ratio(clock) >= LEAST_SHARE
    ]
    streams = Clock.TTFT in enough and Clock.TPOT in enough
    return tuple(clock for clock in enough if clock is not Clock.E2E or not streams)


def lever_of(objective: str) -> str:
    """What to give room where an objective, such as `ttft_p95`, fires in health.

    Its clock, or its kind of share.
    """
    return next((str(clock) for clock in Clock if objective.startswith(f"{clock}_")), objective)


def round_up(seconds: float) -> float:
    """To two digits that are easily said: steps of 1 in the second digit, of 5 from 50 on."""
    size = 10.0 ** math.floor(math.log10(seconds))
    step = 10 if seconds / size < _ROUND_FROM else 2
    told = math.ceil(round(seconds / size * step, 9)) / step * size
    return round(told, 9)


def _clocked(one: Class, clock: Clock) -> Clocked:
    times = one.times[clock]
    bounds = {
        name: found
        for name, least in LEAST.items()
        if times.count >= least and (found := times.quantile(QUANTILES[name])) is not None
    }
    by_hour = sorted(times.by_hour_s(QUANTILES["p95"], LEAST["p50"]).items(), key=lambda h: h[1])
    low, high = (by_hour[0], by_hour[-1]) if by_hour else (None, None)
    return Clocked(times.count, bounds, low, high)


def _tiers(found: Clocked, headroom: float) -> dict[Tier, dict[str, float]]:
    healthy = {name: bounds.high for name, bounds in found.healthy.items()}
    acceptable = {name: round_up(s * (1 + headroom)) for name, s in healthy.items()}
    return {
        Tier.TARGET: {"p95": round_up(healthy["p95"])},
        Tier.ACCEPTABLE: acceptable,
        Tier.CRITICAL: {n: round_up(CRITICAL * acceptable[n]) for n in ("p50", "p95")},
    }


def _availability(one: Class, failed: Bounds | None, steps: int) -> float | None:
    """The strictest that the failures seen leave half of, and that a month's traffic can tell."""
    if failed is None:
        return None
    month = one.requests / max(len(one.hours), 1) * 24 * MONTH_DAYS
    return _rung(AVAILABILITY, max(failed.high, 2 * failed.value, LEAST_BAD / max(month, 1)), steps)


def _rung(ladder: Sequence[float], wanted: float, steps: int) -> float | None:
    """The strictest objective whose budget is so wide, and some steps on; None: none is."""
    wide = [ratio for ratio in ladder if 1 - ratio >= wanted - _DUST]
    return wide[steps] if steps < len(wide) else None


def names_of(classes: Sequence[tuple[str, ...]], unknown: str) -> list[str]:
    """A name for each class that a document can have, all of them different."""
    found: list[str] = []
    for values in classes:
        told = "-".join(value for value in values if value != unknown) or "all"
        kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in told)
        name = unique = kept.strip("-_.").lower()[:_LONGEST_NAME] or "class"
        number = 1
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found.append(unique)
    return found
