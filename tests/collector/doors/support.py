"""What the tests of the doors share: a fake behind the door, gates, and servers on free ports."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.types import ASGIApp, Receive

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.doors.access import Headers, Refusal, Scope
from tailburn.collector.doors.grpc import GrpcDoor
from tailburn.collector.doors.tls import Tls, uvicorn_tls

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True)
class Taken:
    """One call of `Accept`."""

    signal: Signal
    encoding: Encoding
    body: bytes
    tenant: str
    received_ns: int


@dataclass
class Recorder:
    """An `Accept` that keeps what it is given and answers, or raises, what it is told."""

    answer: Accepted | Exception = field(default_factory=Accepted)
    taken: list[Taken] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event | None = None  # waited for before the answer, where there is one

    async def __call__(
        self, signal: Signal, encoding: Encoding, body: bytearray, tenant: str, received_ns: int
    ) -> Accepted:
        assert type(body) is bytearray
        self.taken.append(Taken(signal, encoding, bytes(body), tenant, received_ns))
        self.arrived.set()
        if self.go_on is not None:
            await self.go_on.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @property
    def span_names(self) -> list[str]:
        """Of every traces body in protobuf, by protobuf's own decoder."""
        return [
            span.name
            for taken in self.taken
            if taken.signal is Signal.TRACES
            for resource in ExportTraceServiceRequest.FromString(taken.body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def metric_names(self) -> list[str]:
        return [
            metric.name
            for taken in self.taken
            if taken.signal is Signal.METRICS
            for resource in ExportMetricsServiceRequest.FromString(taken.body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]


@dataclass
class FakeGate:
    """Admits everybody as `acme`, or refuses everybody."""

    refusal: Refusal | None = None
    seen: list[tuple[str | None, dict[bytes, bytes], Scope, bool]] = field(default_factory=list)

    def admit(
        self, peer: str | None, headers: Headers, scope: Scope, *, shows_host: bool = True
    ) -> str | Refusal:
        self.seen.append((peer, dict(headers), scope, shows_host))
        return self.refusal or "acme"


def traces(*names: str) -> bytes:
    """An export request with one span for each name."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for name in names:
        scope.spans.add(name=name, trace_id=bytes(range(16)), span_id=bytes(range(8)))
    return request.SerializeToString()


@asynccontextmanager
async def http_server(app: ASGIApp, tls: Tls | None = None) -> AsyncIterator[int]:
    """`app` behind uvicorn; the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, lifespan="off", log_level="error", proxy_headers=False, **uvicorn_tls(tls)
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]  # it listens already: the first connection waits
    finally:
        server.should_exit = True
        await serving
        listener.close()


@asynccontextmanager
async def grpc_server(door: GrpcDoor) -> AsyncIterator[int]:
    port = await door.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await door.stop(0)


@dataclass
class Answer:
    """What an ASGI callable sent back."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


async def ask(
    app: ASGIApp,
    *chunks: bytes,
    path: str = "/v1/traces",
    method: str = "POST",
    content_type: str | None = PROTOBUF,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Answer:
    """Call an ASGI app in process with a body that comes in these chunks."""
    messages = [
        {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1}
        for i, chunk in enumerate(chunks or (b"",))
    ]

    async def receive() -> Any:
        return messages.pop(0)

    answer = await ask_with(
        app, receive, path=path, method=method, content_type=content_type, headers=headers
    )
    assert answer is not None
    return answer


async def ask_with(
    app: ASGIApp,
    receive: Receive,
    *,
    path: str = "/v1/traces",
    method: str = "POST",
    content_type: str | None = PROTOBUF,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    peer: str | None = "127.0.0.1",
) -> Answer | None:
    """Call an ASGI app in process; None where it sends nothing back."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    kind = () if content_type is None else ((b"content-type", content_type.encode()),)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [*kind, *headers],
        "client": peer and (peer, 4711),
    }
    await app(scope, receive, send)
    if not sent:
        return None
    start, body = sent
    return Answer(start["status"], dict(start["headers"]), body["body"])
