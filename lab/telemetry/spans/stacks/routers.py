"""Routers: production-stack's, smg and sglang-router, vllm-router. Each with its own faults.

production-stack exports no `router` span on a cancel; sglang-router 0.3.2 always begins a
trace of its own and ends its span when a new upstream connection is closed, up to 58 s late;
vllm-router 0.1.17 does the same to its CLIENT span, and cuts traces whose flags are 03.
"""

from typing import Any

import numpy as np

from tailburn.lab.records import Outcome
from tailburn.lab.telemetry.spans.flow import (
    MS,
    OLD_RUST_FLAGS,
    RUST_FLAGS,
    Flow,
    Rows,
    first_of,
    happened,
    optional,
)
from tailburn.lab.telemetry.spans.stacks.http import ROUTE
from tailburn.lab.telemetry.spans.template import (
    ABSENT,
    CLIENT,
    INTERNAL,
    SERVER,
    Event,
    Kind,
    Of,
    Slot,
)
from tailburn.lab.telemetry.spans.wire import Value

_EXCEPTION = Event(
    "raised",
    "exception",
    (
        ("exception.type", "aiohttp.client_exceptions.ClientConnectorError"),
        ("exception.message", "Cannot connect to host"),
        ("exception.stacktrace", "Traceback (most recent call last):"),
        ("exception.escaped", "False"),
    ),
)
STACK_ROUTER = Kind(
    "vllm-router",
    f"router {ROUTE}",
    SERVER,
    (
        ("http.method", "POST"),
        ("http.url", Slot("url", Of.TEXT)),
        ("http.target", ROUTE),
        ("vllm.request_id", Slot("request_id", Of.HEX16)),
        ("vllm.model", Slot("model", Of.TEXT)),
        ("vllm.backend_url", Slot("backend", Of.TEXT)),
        ("vllm.routing_logic", "RoundRobinRouter"),
        ("http.status_code", Slot("http_status", Of.INT)),
    ),
    events=(_EXCEPTION,),
)
STACK_TRY = Kind(
    "vllm-router",
    "process_request",
    CLIENT,
    (
        ("http.method", "POST"),
        ("http.url", Slot("url", Of.TEXT)),
        ("vllm.backend_url", Slot("backend", Of.TEXT)),
        ("vllm.request_id", Slot("request_id", Of.HEX16)),
        ("vllm.is_streaming", Slot("stream", Of.BOOL)),
        ("http.status_code", Slot("http_status", Of.INT)),
    ),
    events=(_EXCEPTION,),
)


def _code_event(at: str, name: str, target: str, *more: tuple[str, Value | Slot]) -> Event:
    return Event(
        at,
        name,
        (
            ("level", "INFO"),
            ("target", target),
            *more,
            ("code.file.path", "model_gateway/src/observability/events.rs"),
            ("code.module.name", target),
            ("code.line.number", 42),
        ),
    )


_SMG = "smg::observability::events"
_SENT = _code_event("sending", "Sending request", _SMG, ("url", Slot("backend", Of.TEXT)))
_GOT = _code_event("got", "Received concurrent requests", _SMG)
_BUSY = (("busy_ns", Slot("busy", Of.INT)), ("idle_ns", Slot("idle", Of.INT)))
SMG = Kind(
    "smg",
    "http_request",
    INTERNAL,
    (
        ("code.file.path", "model_gateway/src/middleware/logging.rs"),
        ("code.module.name", "smg::middleware::logging"),
        ("code.line.number", 86),
        ("thread.id", 3),
        ("thread.name", "tokio-rt-worker"),
        ("target", "smg::otel-trace"),
        ("method", "POST"),
        ("path", ROUTE),
        ("version", "HTTP/1.1"),
        ("module", "smg"),
        ("trace_id", Slot("own", Of.TRACE)),
        ("request_id", Slot("request_id", Of.HEX16)),
        ("status_code", Slot("http_status", Of.DECIMAL)),
        ("latency", Slot("latency_us", Of.DECIMAL)),
        *_BUSY,
    ),
    events=(_SENT, _GOT),
)
SGLANG_ROUTER = Kind(
    "smg",
    "http_request",
    INTERNAL,
    (
        ("code.filepath", "src/middleware.rs"),
        ("code.namespace", "smg::middleware"),
        ("code.lineno", 276),
        ("thread.id", 3),
        ("thread.name", "tokio-runtime-worker"),
        ("method", "POST"),
        ("uri", ROUTE),
        ("version", "HTTP/1.1"),
        ("module", "smg"),
        ("request_id", Slot("request_id", Of.HEX16)),
        ("status_code", Slot("http_status", Of.DECIMAL)),
        ("latency", Slot("latency_us", Of.DECIMAL)),
        *_BUSY,
    ),
    events=tuple(
        Event(
            at,
            name,
            (
                ("level", "INFO"),
                ("target", _SMG),
                *more,
                ("code.filepath", "src/observability/events.rs"),
                ("code.namespace", _SMG),
                ("code.lineno", 42),
            ),
        )
        for at, name, more in (
            ("sending", "Sending request", (("url", Slot("backend", Of.TEXT)),)),
            ("got", "Received concurrent requests", ()),
        )
    ),
)
RUST_SERVER = Kind(
    "vllm-router",
    f"POST {ROUTE}",
    SERVER,
    (
        ("code.filepath", "src/middleware.rs"),
        ("code.namespace", "vllm_router_rs::middleware"),
        ("code.lineno", 165),
        ("thread.id", 3),
        ("thread.name", "tokio-rt-worker"),
        ("http.request.method", "POST"),
        ("url.path", ROUTE),
        ("http.route", ROUTE),
        ("request_id", Slot("request_id", Of.HEX16)),
        ("http.response.status_code", Slot("http_status", Of.DECIMAL)),
        ("latency_ms", Slot("latency_ms", Of.DOUBLE)),
        ("error", Slot("error", Of.TEXT)),
        *_BUSY,
    ),
)
RUST_TRY = Kind(
    "vllm-router",
    f"POST {ROUTE}",
    CLIENT,
    (
        ("code.filepath", "src/otel_http.rs"),
        ("code.namespace", "vllm_router_rs::otel_http"),
        ("code.lineno", 66),
        ("thread.id", 2),
        ("thread.name", "tokio-rt-worker"),
        ("http.request.method", "POST"),
        ("url.full", Slot("url", Of.TEXT)),
        ("http.route", ROUTE),
        ("vllm.request_phase", "inference"),
        ("server.address", Slot("address", Of.TEXT)),
        ("server.port", Slot("port", Of.DECIMAL)),
        ("http.response.status_code", Slot("http_status", Of.DECIMAL)),
        ("error", Slot("error", Of.TEXT)),
        *_BUSY,
    ),
)


class _Passage:
    """Instants and slots that all routers share."""

    def __init__(self, flow: Flow, rows: Rows) -> None:
        a, places = flow.a, flow.places
        engines, at = places.wiring.engines, np.maximum(a.replica[rows], 0)
        self.router = places.router_of(a.replica[rows])
        self.process = places.routers + self.router
        self.begun, self.out = a.router_in[rows], a.router_out[rows]
        told = first_of(a.router_end[rows], a.router_first[rows])
        left = happened(np.minimum(a.client_end[rows], a.client_end[rows]), a.aborted[rows])
        self.end = happened(first_of(told, left), self.begun)
        self.called = self.out >= 0
        headers = flow.headers_engine[rows]
        self.got = self.called & (headers >= self.out)
        self.headers = np.where(self.got, headers + MS // 5, self.end)
        self.code = np.where(a.http_status[rows] >= 400, a.http_status[rows], 200).astype(np.int64)
        self.url = places.text_of("http://{address}:{port}" + ROUTE, engines)[at]
        self.backend = places.text_of("http://{address}:{port}", engines)[at]
        self.address = places.text_of("{address}", engines)[at]
        self.port = np.asarray([e.port for e in engines] or [0])[at]
        self.busy = 200_000 + flow.exponential(rows, "busy", 0.5)

    def times(self, end: Any) -> dict[str, Any]:
        """`busy_ns` and `idle_ns` of tracing-opentelemetry."""
        busy = np.minimum(self.busy, np.maximum(end - self.begun, 1))
        return {"busy": busy, "idle": np.maximum(end - self.begun - busy, 0)}


def production_stack(flow: Flow, rows: Rows) -> None:
    """SERVER and CLIENT span, both to the last byte; on a cancel the first never comes."""
    a, places, p = flow.a, flow.places, _Passage(flow, rows)
    routers = places.wiring.routers
    spans, tries = flow.ids(rows, "router"), flow.ids(rows, "router try")
    broken = p.called & (a.engine_in[rows] < 0) & (p.code >= 500)
    text = places.statuses.index(2, "Cannot connect to host")
    raised = np.where(broken, p.end, ABSENT)
    flow.add(
        STACK_ROUTER, rows, p.process, p.begun, p.end + MS // 5, spans,
        where=a.outcome[rows] != Outcome.CANCELLED, status=np.where(broken, text, 0),
        url=places.text_of("http://{address}:{port}" + ROUTE, routers)[p.router],
        request_id=flow.x_request_id[rows], model=places.models[a.model[rows]],
        backend=optional(p.backend, p.called), http_status=p.code, raised=raised,
    )  # fmt: skip
    flow.add(
        STACK_TRY, rows, p.process, p.out, p.end, tries, parent=spans, where=p.called,
        status=np.where(broken, text, 0), url=p.url, backend=p.backend,
        request_id=flow.x_request_id[rows], stream=a.streamed[rows],
        http_status=optional(p.code, ~broken), raised=raised,
    )  # fmt: skip
    flow.forward(rows, np.where(p.called, tries, spans))


def smg(flow: Flow, rows: Rows) -> None:
    """smg 1.13: one INTERNAL span; `latency` is microseconds to the headers."""
    _smg(flow, rows, SMG, RUST_FLAGS, late=False)


def sglang_router(flow: Flow, rows: Rows) -> None:
    """sglang-router 0.3.2: a trace of its own, and an end that is late on new connections."""
    flow.cut(rows, "sglang-router")
    _smg(flow, rows, SGLANG_ROUTER, OLD_RUST_FLAGS, late=True)


def _smg(flow: Flow, rows: Rows, kind: Kind, flags: tuple[int, int], *, late: bool) -> None:
    p = _Passage(flow, rows)
    spans = flow.ids(rows, "smg")
    end = p.end + MS // 2
    if late:
        new = flow.chance(rows, "new connection") < 0.22
        end = end + np.where(new, _late_ns(flow, rows, 58.0), 0)
    slots: dict[str, Any] = {"own": 0} if kind is SMG else {}
    flow.add(
        kind, rows, p.process, p.begun, end, spans, flags=flags,
        request_id=flow.x_request_id[rows], http_status=p.code,
        latency_us=np.maximum(p.headers - p.begun, 0) // 1_000,
        sending=np.where(p.called, p.out, ABSENT), backend=p.backend,
        got=np.where(p.got, p.headers, ABSENT), **p.times(end), **slots,
    )  # fmt: skip
    flow.forward(rows, spans)


def vllm_router(flow: Flow, rows: Rows) -> None:
    """vllm-router 0.1.17 (Rust): SERVER and CLIENT of one name."""
    cut = rows[flow.flags[rows] == 3]
    flow.cut(cut, "vllm-router")
    a, places, p = flow.a, flow.places, _Passage(flow, rows)
    spans, tries = flow.ids(rows, "vllm-router"), flow.ids(rows, "vllm-router try")
    failed = p.code >= 500
    error = places.texts.index("response failed with status 500 Internal Server Error")
    status = places.statuses.index(2, "response failed with status 500 Internal Server Error")
    end = p.end + MS // 2
    flow.add(
        RUST_SERVER, rows, p.process, p.begun, end, spans, flags=OLD_RUST_FLAGS,
        status=np.where(failed, status, 0), request_id=flow.x_request_id[rows],
        http_status=p.code, latency_ms=np.maximum(p.headers - p.begun, 0) / 1e6,
        error=optional(error, failed), **p.times(end),
    )  # fmt: skip
    new = flow.chance(rows, "new connection") < 0.3
    late = p.end + np.where(new, _late_ns(flow, rows, 31.0), 0)
    no_answer = failed & (a.engine_in[rows] < 0)
    refused = "error sending request for url"
    flow.add(
        RUST_TRY, rows, p.process, p.out, late, tries, parent=spans, where=p.called,
        flags=OLD_RUST_FLAGS,
        status=np.where(failed, places.statuses.index(2, "HTTP 500"), 0),
        url=p.url, address=p.address, port=p.port, http_status=optional(p.code, ~no_answer),
        error=optional(places.texts.index(refused), no_answer), **p.times(late),
    )  # fmt: skip
    flow.forward(rows, np.where(p.called, tries, spans))


def _late_ns(flow: Flow, rows: Rows, most_s: float) -> Any:
    """Until the upstream closes an idle connection: 30 s on, more while it is used again."""
    share = flow.chance(rows, "late end")
    return ((0.5 + share * (most_s - 0.5)) * 1e9).astype(np.int64)
