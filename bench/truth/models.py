"""The small models that the reference tables of false alarms and of detection rest on.

Latencies drawn independently under a gamma-modulated Poisson stream; and a week of Azure's
chat traffic (2024, digitised) before first-in-first-out prefill queues, one server for
each request/s, with the prompts of Azure's chat trace (2023).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.data import read_table
from tailburn.lab.compiled import compiled
from tailburn.lab.score.minutes import BUCKETS, by_minute

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Draw = Callable[[np.random.Generator, int], F64]

DAY: Final = 1_440
WEEK: Final = 7 * DAY
MODULATION: Final = 0.2
"""CV of the gamma that each minute's rate is multiplied by: conv counts are 16 times as
dispersed as Poisson's over 60 s at 5.5 req/s, which is 0.21."""


def lognormal(sigma: float, median_s: float = 0.3) -> Draw:
    """Lognormal latencies."""
    return lambda draw, n: median_s * np.exp(sigma * draw.standard_normal(n))


def heavy_tailed(median_s: float = 0.3) -> Draw:
    """98 % lognormal (sigma .5), 2 % Pareto (alpha 1.5) that begins at three medians."""

    def of(draw: np.random.Generator, n: int) -> F64:
        body = median_s * np.exp(0.5 * draw.standard_normal(n))
        tail = 3.0 * median_s * (1.0 + draw.pareto(1.5, n))
        return np.where(draw.random(n) < 0.02, tail, body)

    return of


def independent(of: Draw, per_s: float, days: int, seed: int) -> U32:
    """Counts [minute, bucket] of independent latencies."""
    draw = np.random.default_rng(seed)
    counts = np.zeros((days * DAY, BUCKETS), np.uint32)
    for day in range(days):
        n = _arrivals(draw, np.full(DAY, per_s * 60.0))
        minute = np.repeat(np.arange(DAY), n)
        counts[day * DAY : (day + 1) * DAY] = by_minute(minute, of(draw, int(n.sum())), DAY)
    return counts


def _arrivals(draw: np.random.Generator, a_minute: F64) -> I64:
    shape = 1.0 / MODULATION**2
    return draw.poisson(a_minute * draw.gamma(shape, 1.0 / shape, len(a_minute)))


@dataclass(frozen=True)
class Week:
    """Azure's chat week: arrivals of each minute over their mean, Sunday first; prompts."""

    rate: F64
    tokens: F64

    @property
    def busiest(self) -> float:
        """Its busiest hour over its mean."""
        return float(self.rate.reshape(-1, 60).mean(axis=1).max())

    @property
    def monday(self) -> slice:
        """Its minutes, of the week."""
        return slice(DAY, 2 * DAY)


def azure_week() -> Week:
    """From the measured tables; FileNotFoundError where they are not."""
    curve: dict[str, Any] = read_table("azure2024_rpm_digitised.csv.gz")
    conv = curve["trace"] == "conv"
    at = curve["time_utc"][conv].astype("datetime64[s]")
    minute = (at - np.datetime64("2024-05-12T00:00:00")).astype(np.float64) / 60.0
    rate = np.interp(np.arange(WEEK) + 0.5, minute, curve["rpm_mid"][conv])
    tokens = read_table("azure2023_conv.csv.gz")["ContextTokens"]
    return Week(rate / rate.mean(), tokens)


@dataclass(frozen=True)
class Slowdown:
    """Service times `factor` times as long, from a minute until another."""

    start: int
    end: int
    factor: float


def queued(
    week: Week,
    per_s: int,
    peak_use: float,
    days: int,
    seed: int,
    gains: bool = False,
    slowdowns: Sequence[Slowdown] = (),
    first_day: int = 0,
) -> U32:
    """Counts [minute, bucket] of TTFT before `per_s` servers, so busy in the busiest hour.

    Each server has a queue of its own, and takes requests as they come, at random.

    `gains`: each day's rate times a lognormal of 8 %.
    """
    draw = np.random.default_rng(seed)
    rate = np.tile(week.rate, 2 + days // 7)[first_day * DAY :][: days * DAY]
    service_s = peak_use / week.busiest / week.tokens.mean()
    gain = np.exp(0.08 * draw.standard_normal(days)) if gains else np.ones(days)
    slow = np.ones(days * DAY)
    for one in slowdowns:
        slow[one.start : one.end] *= one.factor
    counts = np.zeros((days * DAY, BUCKETS), np.uint32)
    free = np.zeros(per_s)
    for day in range(days):
        minutes = slice(day * DAY, (day + 1) * DAY)
        n = _arrivals(draw, rate[minutes] * gain[day] * per_s * 60.0)
        minute = np.repeat(np.arange(DAY), n)
        arrival = np.sort(minute + draw.random(len(minute))) * 60.0 + day * 86_400.0
        service = draw.choice(week.tokens, len(minute)) * service_s * slow[minutes][minute]
        server = draw.integers(0, per_s, len(minute))
        ttft = waited(arrival, service, server, free)
        # Counted when it is told: at its first token.
        told = np.minimum((arrival + ttft) / 60.0, days * DAY - 1.0).astype(np.int64) - day * DAY
        late = told >= DAY
        counts[minutes] += by_minute(told[~late], ttft[~late], DAY)
        for m, t in zip(told[late], ttft[late], strict=True):
            counts[min(day * DAY + m, days * DAY - 1)] += by_minute(
                np.zeros(1, np.int64), np.array([t]), 1
            )[0]
    return counts


@compiled
def waited(arrival_s: F64, service_s: F64, server: I64, free_s: F64) -> F64:
    """Wait and service of each, first in first out at its server; `free_s`: when each is free."""
    out = np.empty(len(arrival_s))
    for i in range(len(arrival_s)):
        end = max(free_s[server[i]], arrival_s[i]) + service_s[i]
        out[i] = end - arrival_s[i]
        free_s[server[i]] = end
    return out
