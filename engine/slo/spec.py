"""The form of an SLO's document, field by field: what a file may say, and its JSON Schema.

Values come as they are written (texts, lists, mappings) and leave as seconds and ratios.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tailburn.engine.slo.readers import (
    ClockTime,
    Dimension,
    Flag,
    HoldTime,
    LabelName,
    Line,
    Link,
    Listed,
    MixShare,
    Name,
    OwnLabel,
    Query,
    Share,
    Tokens,
    WindowTime,
    number,
    schema,
    whole,
)

API_VERSION: Final = "tailburn/v1"
KIND: Final = "ServingSLO"


class Part(BaseModel):
    """A mapping with these fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class Thresholds(Part):
    """The time within which this share of the requests is to be, by percentile."""

    p50: ClockTime | None = None
    p90: ClockTime | None = None
    p95: ClockTime | None = None
    p99: ClockTime | None = None
    p99_9: ClockTime | None = Field(default=None, alias="p99.9")


class Tiers(Part):
    """One clock's three tiers."""

    target: Thresholds | None = Field(default=None, description="Better than this buys little.")
    acceptable: Thresholds | None = Field(
        default=None,
        description="Past this it hurts. From p90 on a budget: p95 lets 5 % be over.",
    )
    critical: Thresholds | None = Field(default=None, description="Past this users leave.")


class Clocks(Part):
    """The times that a request takes."""

    ttft: Tiers | None = Field(
        default=None, description="Start of the request to its first output token."
    )
    tpot: Tiers | None = Field(
        default=None, description="Mean time per output token after the first."
    )
    itl: Tiers | None = Field(default=None, description="Longest gap between two token events.")
    queue: Tiers | None = Field(
        default=None, description="In the engine's queue until first scheduled."
    )
    e2e: Tiers | None = Field(default=None, description="Start of the request to its last byte.")


class Links(Part):
    """Where an alert sends its reader."""

    runbook: Link | None = None
    dashboard: Link | None = None


class Mix(Part):
    """The requests that the figures were made of, as `tailburn slo suggest` writes it."""

    requests: Annotated[int, BeforeValidator(whole(1, 999_999_999)), schema("integer", minimum=1)]
    uncached_tokens: dict[Tokens, MixShare] = Field(
        default_factory=dict, description="Shares by uncached prompt tokens, from so many on."
    )
    prompt_tokens: dict[Tokens, MixShare] = Field(
        default_factory=dict, description="Shares by prompt tokens, from so many on."
    )
    output_tokens: dict[Tokens, MixShare] = Field(
        default_factory=dict, description="Shares by output tokens, from so many on."
    )
    model: dict[Line, MixShare] = Field(default_factory=dict, description="Shares by model.")
    streamed: dict[Flag, MixShare] = Field(
        default_factory=dict, description="Shares of what was streamed, true, and what not."
    )


class Metadata(Part):
    """What the SLO is called; a change here keeps the budget and its history."""

    name: Name = Field(description="Unique over all files; the label `slo` of series and alerts.")
    labels: dict[OwnLabel, Line] = Field(
        default_factory=dict, description="`team` is who is paged."
    )
    links: Links = Links()
    mix: Mix | None = Field(
        default=None,
        description="What the figures were made of: a notice comes when requests have changed.",
    )


class Completion(Part):
    """Batch work: done so long after its start, for this share of the requests."""

    within: ClockTime
    objective: Share


class Consistency(Part):
    """How far the tail may be from the middle, end to end."""

    p99_over_p50: Annotated[
        float, BeforeValidator(number(1.01, 1000, "3")), schema("number", minimum=1.01)
    ]


class Regression(Part):
    """Worse than the same hour of the days before."""

    ratio: Annotated[
        float, BeforeValidator(number(1.01, 100, "1.5")), schema("number", minimum=1.01)
    ] = Field(default=1.5, description="This many times the p99 of the baseline.")
    days: Annotated[
        int,
        BeforeValidator(whole(1, 3, ": the median of so many days is the baseline")),
        schema("integer", minimum=1, maximum=3),
    ] = Field(default=3, description="The baseline is the median of so many days.")


class ScaleOut(Part):
    """When more replicas are wanted."""

    at: Annotated[
        float,
        BeforeValidator(number(0.1, 1, "0.8")),
        schema("number", minimum=0.1, maximum=1),
    ] = Field(default=0.8, description="This share of the acceptable p99 TTFT.")
    hold: HoldTime = Field(default=300.0, alias="for", description="For so long.")


class Exclude(Part):
    """Requests that count in no budget."""

    cancelled_by_client: Literal["always", "never", "before_threshold"] = Field(
        default="before_threshold",
        description="Given up by the client: left out, counted as any other, or left out only "
        "while the threshold was not yet passed.",
    )
    http_status: Annotated[
        list[
            Annotated[
                int,
                BeforeValidator(whole(400, 499, ": only a caller's own mistake can be left out")),
                schema("integer", minimum=400, maximum=499),
            ]
        ],
        Listed(),
    ] = Field(default_factory=list, description="The caller's own mistakes.")
    where: Annotated[list[dict[Dimension, Line]], Listed()] = Field(
        default_factory=list, description="Requests with all these dimensions, say a probe's."
    )


class Queries(Part):
    """Two queries of your own, in requests a second; `{{.window}}` is where the range goes."""

    bad: Query
    total: Query


class Source(Part):
    """Where the counts come from, if not from the service's own counters."""

    engine: Literal["vllm", "sglang", "trtllm", "triton", "dynamo"] | None = Field(
        default=None, description="The engine's own histograms on a Prometheus."
    )
    match: dict[LabelName, Line] = Field(
        default_factory=dict, description="Label matchers of its series, say job: vllm."
    )
    relabelled: Flag = Field(
        default=False, description="You accept that it measures at another vantage than the SLO's."
    )
    histogram: Literal["classic", "native"] = "classic"
    queries: Queries | None = None


class Spec(Part):
    """The promise: a change here starts a new budget."""

    select: dict[Dimension, Line] = Field(
        default_factory=dict, description="The requests it is about, by dimension."
    )
    by: Annotated[list[Dimension], Listed()] = Field(
        default_factory=list, description="A budget for each value of these dimensions."
    )
    vantage: Literal["client", "gateway", "engine"] = Field(
        default="gateway", description="Where the clocks start and stop."
    )
    window: WindowTime | None = Field(
        default=None, description="The budget is for the last so many days; 30d if nothing is said."
    )
    calendar: Literal["day", "week", "month", "quarter"] | None = Field(
        default=None, description="In place of `window`: the budget starts anew each of these."
    )
    time_zone: Line | None = Field(
        default=None, description="Of `calendar`, such as Europe/Berlin."
    )
    clocks: Clocks = Clocks()
    availability: Share | None = Field(default=None, description="Requests that succeed.")
    goodput: Share | None = Field(
        default=None, description="Requests that meet every acceptable p95 clock, and succeed."
    )
    completion: Completion | None = None
    consistency: Consistency | None = None
    regression: Regression | None = None
    scale_out: ScaleOut | None = None
    exclude: Exclude = Exclude()
    source: Source | None = None


class ServingSlo(Part):
    """What a service promises its users, and when to wake somebody up."""

    apiVersion: Literal["tailburn/v1"]  # noqa: N815 (Kubernetes' spelling)
    kind: Literal["ServingSLO"]
    metadata: Metadata
    spec: Spec
