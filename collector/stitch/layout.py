"""Where each value of a span and of a request row lies in the stitcher's matrices.

A span is one row of `wide` (int64) and one of `narrow` (int32); ids and hashes are uint64
bit patterns in int64. A request is one row of `out` (int64) and two of hop times.
"""

from typing import Final

WIDE: Final = (
    "next",  # index of the next span of the same trace; -1 at the end
    "trace",  # index into the trace table
    "span",
    "parent",  # 0: none
    "start_ns",
    "end_ns",
    "received_ns",
    "first_token_ns",
    "last_token_ns",
    "queue_ns",
    "prefill_ns",
    "decode_ns",
    "kv_transfer_ns",
    "kv_load_ns",
    "e2e_ns",
    "own_id",
    "peer_id",
    "digest",
    "weight",  # float64 bit pattern
)
(
    NEXT,
    TRACE,
    SPAN,
    PARENT,
    START,
    END,
    RECEIVED,
    FIRST,
    LAST,
    QUEUE,
    PREFILL,
    DECODE,
    KV_TRANSFER,
    KV_LOAD,
    E2E,
    OWN,
    PEER,
    DIGEST,
    WEIGHT,
) = range(len(WIDE))

NARROW: Final = (
    "class_id",
    "role",
    "hop",
    "end_is",
    "streamed",
    "outcome",
    "http_status",
    "attempt",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "max_output_tokens",
    "model",
    "route",
    "replica",
    "lora",
    "client",
    "pool",
    "request_type",
    "priority",
    "kv_tier",
    "weights_tier",
    "host",
    "node",
    "gpu",
    "zone",
    "service",
    "tenant",
    "repaired",
    "first_with_headers",  # this server sends its headers with the first token
)
(
    CLASS,
    ROLE,
    HOP,
    END_IS,
    STREAMED,
    OUTCOME,
    HTTP,
    ATTEMPT,
    PROMPT,
    CACHED,
    OUTPUT,
    MAX_OUTPUT,
    MODEL,
    ROUTE,
    REPLICA,
    LORA,
    CLIENT,
    POOL,
    REQUEST_TYPE,
    PRIORITY,
    KV_TIER,
    WEIGHTS_TIER,
    HOST,
    NODE,
    GPU,
    ZONE,
    SERVICE,
    TENANT,
    REPAIRED,
    FIRST_WITH_HEADERS,
) = range(len(NARROW))

# Dimensions of a row that are taken over from its spans, in the order of `OUT`.
CODES: Final = (
    "service",
    "model",
    "pool",
    "request_type",
    "priority",
    "client",
    "route",
    "replica",
    "node",
    "gpu",
    "zone",
    "lora",
    "kv_tier",
    "weights_tier",
    "tenant",
)

OUT: Final = (
    "request_id",
    "trace",  # index into the trace table
    "anchor",  # span id
    "closed_ns",
    "start_ns",
    "first_ns",  # 0: unknown
    "end_ns",  # 0: unknown
    "ttft_client_ns",  # -1: unknown, as all durations and counts below
    "ttft_gateway_ns",
    "ttft_engine_ns",
    "stream_client_ns",  # first to last token
    "stream_gateway_ns",
    "stream_engine_ns",
    "e2e_client_ns",
    "e2e_gateway_ns",
    "e2e_engine_ns",
    "itl_max_ns",
    "queue_ns",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "max_output_tokens",
    "streamed",
    "outcome",
    "http_status",
    "attempts",
    "hedged",
    "completeness",
    "missing",  # bit set over VANTAGES
    "flags",  # bit set, see FLAGS
    "offset_ns",
    "half_width_ns",
    "weight",  # float64 bit pattern
    "spans",
    "token_sends",
    "cross_zone",
    "hash",  # of all that makes a new version
    *CODES,
)
(
    O_REQUEST,
    O_TRACE,
    O_ANCHOR,
    O_CLOSED,
    O_START,
    O_FIRST,
    O_END,
    O_TTFT,
    _,
    _,
    O_STREAM,
    _,
    _,
    O_E2E,
    _,
    _,
    O_ITL,
    O_QUEUE,
    O_PROMPT,
    O_CACHED,
    O_OUTPUT,
    O_MAX_OUTPUT,
    O_STREAMED,
    O_OUTCOME,
    O_HTTP,
    O_ATTEMPTS,
    O_HEDGED,
    O_COMPLETENESS,
    O_MISSING,
    O_FLAGS,
    O_OFFSET,
    O_HALF_WIDTH,
    O_WEIGHT,
    O_SPANS,
    O_SENDS,
    O_CROSS_ZONE,
    O_HASH,
    O_CODES,
) = range(len(OUT) - len(CODES) + 1)

FLAGS: Final = ("time", "joined", "inferred", "offset")
FLAG_TIME, FLAG_JOINED, FLAG_INFERRED, FLAG_OFFSET = (1 << i for i in range(len(FLAGS)))
