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
