"""Arrow schemas of the tables of the store.

Times of day are `_ns` since the epoch, durations `_s` seconds as float64: a duration
in whole nanoseconds below 104 days survives the round trip, so sums stay exact.
"""

from typing import Final

import pyarrow as pa

from tailburn.engine.names import (
    CLOCK_COLUMNS,
    DECODE_HOP_COLUMNS,
    DIMENSIONS,
    TTFT_HOP_COLUMNS,
)

_TEXT: Final = pa.dictionary(pa.int32(), pa.string())

REQUESTS: Final = pa.schema(
    [
        ("request_id", pa.string()),  # 16 hex digits: hash(tenant, trace id, anchor span id)
        ("trace_id", pa.string()),  # 32 hex digits
        ("anchor_span_id", pa.string()),  # 16 hex digits
        ("replaces", pa.string()),  # id under which the request was given before: a newer version
        ("version", pa.int32()),  # the highest is the truth; 1: never given before
        ("tombstone", pa.bool_()),  # this id is no request any more
        ("completeness", _TEXT),
        ("missing", _TEXT),  # hops expected on this route and not seen, comma separated
        *((d, _TEXT) for d in DIMENSIONS),
        ("streamed", pa.bool_()),
        ("start_ns", pa.int64()),
        ("first_token_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("received_ns", pa.int64()),  # receive time at which this version closed
        *((c, pa.float64()) for c in CLOCK_COLUMNS),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("max_output_tokens", pa.int32()),
        ("replica_age_s", pa.float64()),
        ("kv_tier", _TEXT),
        ("weights_tier", _TEXT),
        ("attempts", pa.int32()),
        ("hedged", pa.bool_()),
        ("outcome", _TEXT),
        ("http_status", pa.int32()),
        *((c, pa.float64()) for c in TTFT_HOP_COLUMNS),
        *((c, pa.float64()) for c in DECODE_HOP_COLUMNS),
        ("cross_zone", pa.bool_()),  # some edge crosses a zone
        ("clock_offset_s", pa.float64()),  # widest correction used
        ("clock_offset_half_width_s", pa.float64()),
        ("weight", pa.float64()),  # 1 / sampling probability
        ("repaired", _TEXT),  # comma separated: time, joined, inferred, offset
        ("spans", pa.int32()),
        ("token_sends", pa.int32()),  # spans that became token times
        ("digests", pa.list_(pa.uint64())),  # of every span in this request
        ("content_hash", pa.uint64()),  # of all that makes a new version
    ]
)

_ATTRIBUTES_NUM: Final = pa.map_(_TEXT, pa.float64())
_ATTRIBUTES_STR: Final = pa.map_(_TEXT, pa.string())

SPANS: Final = pa.schema(
    [
        ("received_ns", pa.int64()),
        ("tenant", _TEXT),
        ("trace_id", pa.binary(16)),
        ("span_id", pa.binary(8)),
        ("parent_span_id", pa.binary(8)),  # eight zero bytes: no parent
        ("name", _TEXT),
        ("scope", _TEXT),
        ("service", _TEXT),
        ("resource", _TEXT),  # the resource's attributes as JSON
        ("kind", pa.int8()),  # OTLP SpanKind
        ("status", pa.int8()),  # OTLP StatusCode
        ("flags", pa.uint32()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("hop", _TEXT),  # null: not recognised
        ("rule", _TEXT),  # name of the rule in hops.yaml that matched
        ("quarantined", _TEXT),  # reason; null: sound
        ("repaired", pa.bool_()),  # times were implausible and mended
        ("digest", pa.uint64()),  # of the content
        ("weight", pa.float32()),
        ("attributes_num", _ATTRIBUTES_NUM),
        ("attributes_str", _ATTRIBUTES_STR),
        ("events", pa.list_(pa.struct([("name", _TEXT), ("time_ns", pa.int64())]))),
    ]
)

ROLLUP_DIMENSIONS: Final = (
    "tenant",
    "service",
    "model",
    "pool",
    "request_type",
    "prompt_class",
    "priority",
    "route",
    "replica",
)

ROLLUPS: Final = pa.schema(
    [
        ("minute_ns", pa.int64()),  # start of the receive minute
        *((d, _TEXT) for d in ROLLUP_DIMENSIONS),
        ("clock", _TEXT),  # a clock column or a per-hop column of `requests`
        ("count", pa.int64()),  # negative in a row that takes an older version back
        ("sum_s", pa.float64()),
        ("min_s", pa.float64()),
        ("max_s", pa.float64()),
        ("buckets", pa.list_(pa.int16())),  # indices, see engine.histogram
        ("counts", pa.list_(pa.int64())),
    ]
)

SIGNALS: Final = pa.schema(
    [
        ("received_ns", pa.int64()),
        ("time_ns", pa.int64()),
        ("tenant", _TEXT),
        ("service", _TEXT),
        ("resource", _TEXT),
        ("name", _TEXT),
        ("kind", _TEXT),  # gauge, sum, histogram_sum, histogram_count, histogram_bucket, ...
        ("unit", _TEXT),
        ("labels", _TEXT),  # JSON, keys sorted
        ("value", pa.float64()),
    ]
)

VERDICTS: Final = pa.schema(
    [
        ("minute_ns", pa.int64()),  # start of the receive minute of the closing
        ("slo", _TEXT),
        ("objective", _TEXT),
        ("definition", _TEXT),  # another one, another budget
        ("by", _TEXT),  # JSON: each dimension of the SLO's `by`, and its value
        ("requests", pa.int64()),  # with a verdict; the first version of each
        ("bad", pa.int64()),  # of these
        ("unmeasured", pa.int64()),  # not among `requests`
        ("late", pa.int64()),  # verdicts, of any minute, that a version of this one changed
    ]
)

EXCESS: Final = pa.schema(
    [
        ("minute_ns", pa.int64()),  # start of the receive minute of the closing
        ("slo", _TEXT),
        ("by", _TEXT),  # as in VERDICTS
        ("hop", _TEXT),  # a hop, `unattributed`, or `all`
        ("slow_ns", pa.int64()),  # what slow requests took over the baseline
    ]
)

USUAL_DIMENSIONS: Final = (
    "tenant",
    "service",
    "pool",
    "route",
    "priority",
    "model",
    "request_type",
    "replica",
)

USUAL: Final = pa.schema(
    [
        ("hour_ns", pa.int64()),  # start of the receive hour
        *((d, _TEXT) for d in USUAL_DIMENSIONS),
        ("clock", _TEXT),
        ("basis", _TEXT),  # engine.baseline.load.Basis
        ("rate_bin", pa.int64()),  # floor(2 log2 of requests a second)
        ("token_bin", pa.int64()),  # floor(2 log2 of prompt tokens); 0 where they aren't matched on
        ("hit_bin", pa.int64()),  # tenths of the prefix-hit ratio; -1: untold, or not matched on
        ("left_out", pa.bool_()),  # the series was late too often in this hour to be learnt from
        ("count", pa.int64()),
        ("tokens", pa.int64()),  # sum
        ("min_s", pa.float64()),
        ("max_s", pa.float64()),
        ("buckets", pa.list_(pa.int16())),  # indices, see engine.histogram
        ("counts", pa.list_(pa.int64())),
    ]
)

COUNTED: Final = {
    "verdicts": ("minute_ns", "slo", "objective", "definition", "by"),
    "excess": ("minute_ns", "slo", "by", "hop"),
}
"""Tables whose rows add up, and the columns that tell their sums apart; the rest are int64."""

TABLES: Final = {
    "requests": REQUESTS,
    "spans": SPANS,
    "rollups": ROLLUPS,
    "signals": SIGNALS,
    "verdicts": VERDICTS,
    "excess": EXCESS,
    "usual": USUAL,
}
