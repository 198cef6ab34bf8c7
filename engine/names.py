"""Every name of a metric, label, hop, clock and column, in one place.

A hop is a place where a request spends time. `HOPS` is in order of depth: where
several hops are active at one instant, the deepest owns it. A name with `>` is an
edge between two hops; in column names `>` is written `_to_`.
"""

from typing import Final

HOPS: Final = (
    "client",
    "client>gateway",
    "gateway",
    "guardrail",
    "gateway>router",
    "router",
    "router>engine",
    "gateway>engine",
    "client>engine",
    "retrieval",
    "tokenizer",
    "engine",
    "queue",
    "prefill",
    "decode",
    "kv_transfer",
    "kv_load",
    "model_load",
    "lora_load",
    "detokenizer",
    "retry",
)
UNATTRIBUTED: Final = "unattributed"
ALL_HOPS: Final = "all"  # where a column of hops has their sum
HOP_INDEX: Final = {name: i for i, name in enumerate(HOPS)}

VANTAGES: Final = ("client", "gateway", "engine")
QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)

COMPLETENESS: Final = ("complete", "partial", "rootless", "conflict")
OUTCOMES: Final = ("unknown", "ok", "error", "cancelled")

DIMENSIONS: Final = (
    "service",
    "model",
    "pool",
    "request_type",
    "prompt_class",
    "priority",
    "tenant",
    "client",
    "route",
    "replica",
    "node",
    "gpu",
    "zone",
    "lora",
)
UNKNOWN: Final = "unknown"
OVERFLOW: Final = "other"

FATES: Final = (
    "stored",
    "folded",
    "duplicate",
    "sampled_out",
    "quarantined",
    "rejected",
    "dropped",
    "open",
)


def column_of(hop: str) -> str:
    """The hop's part of a column name: `gateway>engine` becomes `gateway_to_engine`."""
    return hop.replace(">", "_to_")


def ttft_hop_column(hop: str) -> str:
    """The column of a hop's own time before the first token.

    `ttft_gateway_s` is the gateway's clock, so the gateway's own share is `ttft_gateway_self_s`;
    the same for every vantage.
    """
    return f"ttft_{column_of(hop)}_self_s" if hop in VANTAGES else f"ttft_{column_of(hop)}_s"


def decode_hop_column(hop: str) -> str:
    """The column of a hop's own time from the first token to the last."""
    return f"decode_{column_of(hop)}_s"


TTFT_HOP_COLUMNS: Final = tuple(ttft_hop_column(h) for h in (*HOPS, UNATTRIBUTED))
DECODE_HOP_COLUMNS: Final = tuple(decode_hop_column(h) for h in (*HOPS, UNATTRIBUTED))
CLOCK_COLUMNS: Final = (
    *(f"ttft_{v}_s" for v in VANTAGES),
    *(f"tpot_{v}_s" for v in VANTAGES),
    *(f"e2e_{v}_s" for v in VANTAGES),
    "itl_max_s",
    "queue_s",
)


CLOCK_METRICS: Final = {
    "ttft": ("tailburn_ttft_seconds", "Start of a request to its first output token."),
    "tpot": ("tailburn_tpot_seconds", "Mean time per output token after the first."),
    "e2e": ("tailburn_e2e_seconds", "Start of a request to its last byte."),
    "itl_max": ("tailburn_itl_max_seconds", "Longest gap between two token events of a request."),
    "queue": ("tailburn_queue_seconds", "Time in the engine's queue until first scheduled."),
}
REQUESTS_METRIC: Final = "tailburn_requests_total"
HOP_METRIC: Final = "tailburn_hop_seconds_total"
VANTAGE_LABEL: Final = "vantage"
HOP_LABEL: Final = "hop"
PHASE_LABEL: Final = "phase"  # ttft or decode: before the first token, or after it

# Exact counters of the verdicts on closed requests. Labels: slo, objective, definition and the
# SLO's `by` dimensions. A changed definition is another value of its label: no budget mixes two.
SLO_REQUESTS_METRIC: Final = "tailburn_slo_requests_total"
SLO_BAD_METRIC: Final = "tailburn_slo_bad_total"
SLO_UNMEASURED_METRIC: Final = "tailburn_slo_unmeasured_total"  # a clock is missing
SLO_LATE_METRIC: Final = "tailburn_slo_late_total"  # verdicts that a later version changed
# Misses of the deadline by load: 1.5 times the p99 seen at the same load and prompt length.
SLO_DEADLINE_REQUESTS_METRIC: Final = "tailburn_slo_deadline_requests_total"
SLO_DEADLINE_MISSED_METRIC: Final = "tailburn_slo_deadline_missed_total"
# Labels: slo, hop and the `by` dimensions. Seconds over the baseline of requests over the
# threshold, per hop and in all: a hop owns the excess from half of it on.
SLO_SLOW_SECONDS_METRIC: Final = "tailburn_slo_slow_seconds_total"
SLO_EXCESS_SECONDS_METRIC: Final = "tailburn_slo_excess_seconds_total"
# Labels: slo and `by`. Requests of which something was seen and that have not finished.
SLO_IN_FLIGHT_METRIC: Final = "tailburn_slo_in_flight_requests"
# Labels: slo and measure. How far a day's requests are from those the SLO was made of.
SLO_MIX_INDEX_METRIC: Final = "tailburn_slo_mix_stability_index"
SLO_MIX_MOVED_METRIC: Final = "tailburn_slo_mix_moved"
MEASURE_LABEL: Final = "measure"
SLO_LABEL: Final = "slo"
OBJECTIVE_LABEL: Final = "objective"
DEFINITION_LABEL: Final = "definition"

# Counts since the begin of a calendar window, where a budget has one: gauges with the labels of
# the counters above. A range in PromQL can not begin at the first of the month.
SLO_PERIOD_REQUESTS_METRIC: Final = "tailburn_slo_period_requests"
SLO_PERIOD_BAD_METRIC: Final = "tailburn_slo_period_bad"

# What the generated rules record. Labels: slo, objective, definition and the `by` dimensions;
# rates are in requests a second, over the window at the end of the name: `...:rate1h`.
SLO_TOTAL_RATE_RECORD: Final = "tailburn_slo:total:rate"
SLO_BAD_RATE_RECORD: Final = "tailburn_slo:bad:rate"
SLO_DEADLINE_TOTAL_RATE_RECORD: Final = "tailburn_slo:deadline_requests:rate"
SLO_DEADLINE_MISSED_RATE_RECORD: Final = "tailburn_slo:deadline_missed:rate"
SLO_BURN_RECORD: Final = "tailburn_slo:burn:rate"  # bad / total / budget over a window
SLO_BUDGET_RECORD: Final = "tailburn_slo:budget:ratio"
SLO_BUDGET_LEFT_RECORD: Final = "tailburn_slo:budget_left:ratio"
SLO_SAMPLED: Final = "_sampled"  # rates over 5 min, few of them: what long windows are means of

SEVERITY_LABEL: Final = "severity"
LONG_LABEL: Final = "long"
SHORT_LABEL: Final = "short"
TEAM_LABEL: Final = "team"


def slo_quantile_record(clock: str, percentile: str, window: str) -> str:
    """Seconds that this share of an SLO's requests stay under: `tailburn_slo:ttft:p99_5m`.

    Labels: slo and its `by` dimensions. There is no sample where too few requests came.
    """
    return f"tailburn_slo:{clock}:{percentile.replace('.', '')}_{window}"


def slo_view_record(clock: str, percentile: str, dimension: str) -> str:
    """The same over 5 min for each value of one more dimension, for dashboards."""
    return f"{slo_quantile_record(clock, percentile, '5m')}_by_{dimension}"


def slo_worst_record(clock: str, percentile: str, window: str) -> str:
    """The worst minute's percentile within a window."""
    return f"tailburn_slo:{clock}:{percentile.replace('.', '')}_worst_{window}"


def slo_baseline_record(clock: str) -> str:
    """p99 of this hour of the day as it was on the days before."""
    return f"tailburn_slo:{clock}:p99_baseline"


def slo_over_baseline_record(clock: str) -> str:
    """p99 of the last 5 min over the baseline."""
    return f"tailburn_slo:{clock}:p99_over_baseline"


# Labels: slo, hop and the `by` dimensions. Which share of the slow requests' excess a hop has.
SLO_EXCESS_SHARE_RECORD: Final = "tailburn_slo:excess_share:ratio30m"
SLO_OWNER_RECORD: Final = "tailburn_slo:owner:ratio30m"  # the hop with half of it or more

# Signals for autoscalers. Labels: slo and its `by` dimensions. Each that asks for replicas is
# over its target: at 1 there are enough. Hold is 1 while no replica may go, else 0.
SCALE_TTFT_RECORD: Final = "tailburn_slo:scale_ttft:ratio"
SCALE_OUT_RECORD: Final = "tailburn_slo:scale_out:ratio"
SCALE_GATED_RECORD: Final = "tailburn_slo:scale_out_gated:ratio"
SCALE_WAITING_RECORD: Final = "tailburn_slo:scale_waiting:ratio"
SCALE_KV_RECORD: Final = "tailburn_slo:scale_kv:ratio"
SCALE_HOLD_RECORD: Final = "tailburn_slo:scale_hold:ratio"
SCALE_REPLICAS_RECORD: Final = "tailburn_slo:scale_replicas:count"


def scale_signal(record: str) -> str:
    """The signal's short name: `scale_out`."""
    return record.removeprefix("tailburn_slo:").rpartition(":")[0]


def scale_metric(record: str) -> str:
    """The gauge by which `/metrics` shows a signal: `tailburn_slo_scale_out_ratio`.

    A colon is for what rules record. Under one name both would be two series to whoever asks.
    """
    return record.removesuffix(":count").replace(":", "_")
