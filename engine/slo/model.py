"""What a serving SLO promises: clocks in three tiers, budgets, windows.

All thresholds and spans of time are seconds, all shares are ratios from 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal


class Clock(StrEnum):
    """A time that a request takes; each is measured at the SLO's vantage."""

    TTFT = "ttft"
    TPOT = "tpot"
    ITL = "itl"
    QUEUE = "queue"
    E2E = "e2e"


DEFINITIONS: Final = {
    Clock.TTFT: "from the {vantage}'s start of the request to its first output token there",
    Clock.TPOT: "(last token - first token) / (output tokens - 1) at the {vantage}",
    Clock.ITL: "the longest gap between two token events of a request at the {vantage}",
    Clock.QUEUE: "from enqueued in the engine to first scheduled",
    Clock.E2E: "from the {vantage}'s start of the request to its last byte there",
}


class Tier(StrEnum):
    """Better than the target buys little; past acceptable hurts; past critical, users leave."""

    TARGET = "target"
    ACCEPTABLE = "acceptable"
    CRITICAL = "critical"


QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""The percentiles that an SLO can name."""

LOWEST_BUDGET_QUANTILE: Final = 0.9
"""An acceptable percentile from here on is a budget: p95 allows 5 % of the requests to be over."""

Thresholds = Mapping[str, float]
"""Seconds by percentile, `p95`: 0.5."""


@dataclass(frozen=True)
class Rolling:
    """The last so many seconds."""

    seconds: float

    def __str__(self) -> str:
        days, rest = divmod(self.seconds, 86_400)
        return f"{days:g}d" if not rest else f"{self.seconds / 3600:g}h"


@dataclass(frozen=True)
class Calendar:
    """Since the begin of the day, week, month or quarter, in a time zone."""

    period: Literal["day", "week", "month", "quarter"]
    time_zone: str = "UTC"

    def __str__(self) -> str:
        return f"calendar {self.period} ({self.time_zone})"


Window = Rolling | Calendar


@dataclass(frozen=True)
class Place:
    """Where something was said: a file and a line of it, from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Regression:
    """Worse than the same hour of the days before, by this ratio."""

    ratio: float = 1.5
    days: int = 3  # 1: the plain rule, which is true in many healthy minutes


@dataclass(frozen=True)
class ScaleOut:
    """Above this share of the acceptable p99 TTFT for so long."""

    at_ratio: float = 0.8
    for_s: float = 300.0


@dataclass(frozen=True)
class Completion:
    """Batch work: done so many seconds after its start, for this share of the requests."""

    within_s: float
    objective_ratio: float


@dataclass(frozen=True)
class Exclude:
    """Requests that count in no budget."""

    # Given up by the client: never counted, counted as any other, or left out only while
    # the threshold was not yet passed: users who left after it, left because of it.
    cancelled_by_client: Literal["always", "never", "before_threshold"] = "before_threshold"
    http_status: tuple[int, ...] = ()  # say 400, 404: the caller's own mistakes
    where: tuple[Mapping[str, str], ...] = ()  # dimensions, say a synthetic client


@dataclass(frozen=True)
class Mix:
    """The requests that an SLO was made of: shares by measure and class (`engine.slo.mix`)."""

    requests: int
    shares: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class EngineSource:
    """An engine's own histograms on a Prometheus, where no spans are collected."""

    engine: Literal["vllm", "sglang", "trtllm", "triton", "dynamo"]
    match: Mapping[str, str] = field(default_factory=dict)  # label matchers, say job: vllm
    relabelled: bool = False  # the user accepts that its vantage is not the SLO's
    histogram: Literal["classic", "native"] = "classic"


@dataclass(frozen=True)
class QuerySource:
    """A user's own counters: two PromQL queries, with `{{.window}}` where the range goes.

    Each answers in requests a second, as `sum(rate(x[{{.window}}]))` does. They know no
    clock: of the budgets only availability can rest on them, and bad is what `bad` counts.
    """

    bad: str
    total: str


Source = EngineSource | QuerySource


@dataclass(frozen=True)
class Slo:
    """One document, checked. `objectives` gives its budgets."""

    name: str
    place: Place
    labels: Mapping[str, str] = field(default_factory=dict)
    select: Mapping[str, str] = field(default_factory=dict)  # dimension: value
    by: tuple[str, ...] = ()  # dimensions with a budget for each value
    vantage: Literal["client", "gateway", "engine"] = "gateway"
    window: Window = Rolling(30 * 86_400.0)  # noqa: RUF009 (frozen)
    clocks: Mapping[Clock, Mapping[Tier, Thresholds]] = field(default_factory=dict)
    availability_ratio: float | None = None
    goodput_ratio: float | None = None
    completion: Completion | None = None
    consistency_p99_over_p50: float | None = None
    regression: Regression | None = None
    scale_out: ScaleOut | None = None
    exclude: Exclude = Exclude()  # noqa: RUF009 (frozen)
    source: Source | None = None  # None: the service's own counters
    runbook_url: str | None = None
    dashboard_url: str | None = None
    mix: Mix | None = None  # None: it was not made of requests that were seen

    @property
    def team(self) -> str:
        """Who is paged; empty where nobody is named."""
        return self.labels.get("team", "")

    @property
    def is_batch(self) -> bool:
        """Whether the pool promises completion by a time, not a quick first token."""
        return self.completion is not None


class Kind(StrEnum):
    """What makes a request bad in a budget."""

    AVAILABILITY = "availability"
    GOODPUT = "goodput"
    CLOCK = "clock"
    COMPLETION = "completion"


@dataclass(frozen=True)
class Objective:
    """One budget: this share of the requests may be bad over the window."""

    name: str  # value of the label `objective`: availability, goodput, completion, ttft_p95
    kind: Kind
    budget_ratio: float
    clock: Clock | None = None
    quantile: float | None = None
    threshold_s: float | None = None


def objectives(slo: Slo) -> tuple[Objective, ...]:
    """Its budgets: availability, goodput, completion, each acceptable percentile from p90 on."""
    found = []
    if slo.availability_ratio is not None:
        found.append(_share(Kind.AVAILABILITY, slo.availability_ratio))
    if slo.goodput_ratio is not None:
        found.append(_share(Kind.GOODPUT, slo.goodput_ratio))
    if (completion := slo.completion) is not None:
        budget = _budget(completion.objective_ratio)
        found.append(
            Objective("completion", Kind.COMPLETION, budget, threshold_s=completion.within_s)
        )
    for clock, tiers in slo.clocks.items():
        for percentile, threshold_s in tiers.get(Tier.ACCEPTABLE, {}).items():
            quantile = QUANTILES[percentile]
            if quantile >= LOWEST_BUDGET_QUANTILE:
                name = f"{clock}_{percentile.replace('.', '_')}"
                budget = _budget(quantile)
                found.append(Objective(name, Kind.CLOCK, budget, clock, quantile, threshold_s))
    return tuple(found)


def _share(kind: Kind, objective_ratio: float) -> Objective:
    return Objective(str(kind), kind, _budget(objective_ratio))


def _budget(objective_ratio: float) -> float:
    """1 - objective, without the dust that the subtraction leaves: 0.001, not 0.00099999..."""
    return round(1 - objective_ratio, 12)
