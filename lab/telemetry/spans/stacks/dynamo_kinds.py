"""Spans of NVIDIA Dynamo 1.6: numbers are strings, and every event carries its code's place."""

from typing import Final

from tailburn.lab.telemetry.spans.stacks.http import ROUTE
from tailburn.lab.telemetry.spans.template import (
    CLIENT,
    INTERNAL,
    SERVER,
    Event,
    Kind,
    Of,
    Slot,
)
from tailburn.lab.telemetry.spans.wire import Value

Pairs = tuple[tuple[str, Value | Slot], ...]

REQUEST_ID: Final = ("request_id", Slot("request_id", Of.UUID))
X_REQUEST_ID: Final = ("x_request_id", Slot("x_request_id", Of.HEX16))
_BUSY: Final[Pairs] = (("busy_ns", Slot("busy", Of.INT)), ("idle_ns", Slot("idle", Of.INT)))
_CONTEXT: Final[Pairs] = (
    ("trace_id", Slot("caller", Of.TRACE)),
    ("parent_id", Slot("caller", Of.PARENT)),
    ("trace_flags", Slot("caller_flags", Of.TEXT)),
)


def _code(path: str, module: str, line: int, target: str) -> Pairs:
    return (
        ("code.file.path", f"/opt/dynamo/{path}"),
        ("code.module.name", module),
        ("code.line.number", line),
        ("thread.id", 5),
        ("thread.name", "tokio-rt-worker"),
        ("target", target),
    )


def _event(at: str, name: str, target: str, more: Pairs) -> Event:
    place: Pairs = (
        ("code.file.path", "/opt/dynamo/lib/" + target.replace("::", "/") + ".rs"),
        ("code.module.name", target),
        ("code.line.number", 100),
    )
    return Event(at, name, (("level", "INFO"), ("target", target), *more, *place))


_METRICS: Final = "dynamo_llm::http::service::metrics"
_SERVED: Final[Pairs] = (
    REQUEST_ID,
    ("model", Slot("model", Of.TEXT)),
    ("endpoint", "chat_completions"),
    ("request_type", Slot("request_type", Of.TEXT)),
)
HTTP: Final = Kind(
    "",
    "http-request",
    INTERNAL,
    (
        *_code("lib/runtime/src/logging.rs", "dynamo_runtime::logging", 636, "request_span"),
        ("method", "POST"),
        ("uri", ROUTE),
        ("version", "HTTP/1.1"),
        *_CONTEXT,
        X_REQUEST_ID,
        REQUEST_ID,
        ("model", Slot("model", Of.TEXT)),
        ("input_tokens", Slot("input", Of.DECIMAL)),
        ("output_tokens", Slot("output", Of.DECIMAL)),
        ("image_count", Slot("none", Of.DECIMAL)),
        ("video_count", Slot("none", Of.DECIMAL)),
        ("audio_count", Slot("none", Of.DECIMAL)),
        ("ttft_ms", Slot("ttft", Of.CENTI)),
        ("avg_itl_ms", Slot("itl", Of.CENTI)),
        ("prefill_worker_id", Slot("prefill_worker", Of.DECIMAL)),
        ("decode_worker_id", Slot("decode_worker", Of.DECIMAL)),
        ("request.outcome", Slot("outcome", Of.TEXT)),
        *_BUSY,
    ),
    events=(
        _event("taken", "request received", _METRICS, _SERVED),
        _event(
            "answered",
            "http response sent",
            "dynamo_llm::http::service::service_v2",
            (
                ("status", Slot("http_status", Of.DECIMAL)),
                ("latency_ms", Slot("latency", Of.DECIMAL)),
            ),
        ),
        _event(
            "completed",
            "request completed",
            _METRICS,
            (
                *_SERVED,
                ("status", Slot("how", Of.TEXT)),
                ("error_type", Slot("error", Of.TEXT)),
                ("error_detail", Slot("error", Of.TEXT)),
                ("elapsed_ms", Slot("elapsed", Of.DECIMAL)),
            ),
        ),
    ),
)
_SELECTION: Final = "dynamo_kv_router::services::selection"


def _inner(name: str, file: str, line: int) -> Kind:
    module = f"{_SELECTION}::{file.replace('/', '::')}"
    path = f"lib/kv-router/src/services/selection/{file}.rs"
    return Kind("", name, INTERNAL, (*_code(path, module, line, module), *_BUSY))


BLOCK_HASHES: Final = _inner("kv_router.compute_block_hashes", "input", 203)
SEQ_HASHES: Final = _inner("kv_router.compute_seq_hashes", "input", 206)
FIND_MATCHES: Final = _inner("kv_router.find_matches", "core/run", 747)
SCHEDULE: Final = _inner("kv_router.schedule", "core/run", 454)
_HOST: Final = "dynamo_llm::kv_router::routing_host::kv"
_HOST_FILE: Final = "lib/llm/src/kv_router/routing_host/kv.rs"
SELECT: Final = Kind(
    "",
    "kv_router.select_worker",
    INTERNAL,
    (*_code(_HOST_FILE, _HOST, 53, _HOST), *_BUSY),
)
ROUTE_REQUEST: Final = Kind(
    "",
    "kv_router.route_request",
    CLIENT,
    (
        *_code(_HOST_FILE, _HOST, 560, "request_span"),
        REQUEST_ID,
        ("dp_rank", Slot("none", Of.DECIMAL)),
        ("overlap_blocks", Slot("overlap", Of.DECIMAL)),
        ("phase", Slot("phase", Of.TEXT)),
        ("worker_id", Slot("worker", Of.DECIMAL)),
        ("request.attempt", Slot("none", Of.DECIMAL)),
        ("migration.is_retry", False),
        ("migration.tokens_completed", Slot("migrated", Of.DECIMAL)),
        ("request.outcome", Slot("outcome", Of.TEXT)),
        ("cancellation.signal", Slot("signal", Of.TEXT)),
        ("error.type", Slot("error", Of.TEXT)),
        *_BUSY,
    ),
    events=(
        _event(
            "completed",
            "route request completed",
            "request_span",
            (("request.outcome", "success"),),
        ),
        _event(
            "cancelled",
            "route request cancelled",
            "request_span",
            (("request.outcome", "cancelled"), ("cancellation.signal", "stream_drop")),
        ),
        _event(
            "failed",
            "route request failed",
            "request_span",
            (("request.outcome", "error"), ("error.type", "disconnected")),
        ),
    ),
)
_INGRESS: Final = "dynamo_runtime::pipeline::network::ingress::push_handler"
HANDLE: Final = Kind(
    "",
    "handle_payload",
    SERVER,
    (
        *_code("lib/runtime/src/logging.rs", "dynamo_runtime::logging", 778, "request_span"),
        *_CONTEXT,
        X_REQUEST_ID,
        REQUEST_ID,
        ("component", Slot("component", Of.TEXT)),
        ("endpoint", Slot("endpoint", Of.TEXT)),
        ("namespace", "dynamo"),
        ("instance_id", Slot("worker", Of.DECIMAL)),
        *_BUSY,
    ),
    events=(
        _event("taken", "request received", _INGRESS, (REQUEST_ID,)),
        _event(
            "cancelled",
            "request cancellation received",
            "request_span",
            (REQUEST_ID, ("cancellation.signal", "kill"), ("cancellation.source", "upstream")),
        ),
        _event("completed", "request completed", _INGRESS, (REQUEST_ID,)),
    ),
)
