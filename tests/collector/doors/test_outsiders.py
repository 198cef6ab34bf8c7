"""Both doors on real sockets, judged by the exporters and clients that people use."""

import asyncio
import gzip
import socket
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest
from backports import zstd
from google.protobuf import json_format
from google.rpc import status_pb2
from grpc import Compression as GrpcCompression
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
    OTLPMetricExporter as GrpcMetricExporter,
)
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
    OTLPMetricExporter as HttpMetricExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from tailburn.collector.accept import Accepted
from tailburn.collector.doors.access import Refusal
from tailburn.collector.doors.grpc import GrpcDoor
from tailburn.collector.doors.http import otlp_front
from tailburn.collector.doors.limits import Budget, Limits
from tailburn.collector.doors.tally import Answer, Tally
from tailburn.collector.errors import Busy
from tests.collector.doors.support import (
    JSON,
    PROTOBUF,
    FakeGate,
    Recorder,
    grpc_server,
    http_server,
    traces,
)

MIB = 1 << 20
Export = Callable[[int], Any]


def over_http(accept: Recorder, export: Export, gate: FakeGate | None = None) -> Any:
    """Run `export`, which blocks, against the HTTP door; it is given the port."""

    async def run() -> Any:
        async with http_server(otlp_front(accept, gate or FakeGate(), Limits(), None)) as port:
            return await asyncio.to_thread(export, port)

    return asyncio.run(run())


def over_grpc(accept: Recorder, export: Export, gate: FakeGate | None = None) -> Any:
    async def run() -> Any:
        async with grpc_server(GrpcDoor(accept, gate or FakeGate(), Limits())) as port:
            return await asyncio.to_thread(export, port)

    return asyncio.run(run())


class Watched(SpanExporter):
    """An exporter whose results are kept."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.results: list[SpanExportResult] = []

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        self.results.append(self._exporter.export(spans))
        return self.results[-1]

    def shutdown(self) -> None:
        self._exporter.shutdown()


def send_spans(exporter: SpanExporter, *names: str) -> list[SpanExportResult]:
    """Start and end these spans with the SDK; what the exporter said of each."""
    watched = Watched(exporter)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(watched))
    for name in names:
        provider.get_tracer("test").start_span(name, attributes={"gen_ai.system": "vllm"}).end()
    provider.shutdown()
    return watched.results


def http_spans(port: int, compression: Compression, **kwargs: Any) -> HttpSpanExporter:
    endpoint = f"http://127.0.0.1:{port}/v1/traces"
    return HttpSpanExporter(endpoint=endpoint, compression=compression, **kwargs)


def grpc_spans(port: int, compression: GrpcCompression, **kwargs: Any) -> GrpcSpanExporter:
    return GrpcSpanExporter(
        endpoint=f"127.0.0.1:{port}", insecure=True, compression=compression, **kwargs
    )


@pytest.mark.parametrize(
    "compression", [Compression.NoCompression, Compression.Gzip], ids=["plain", "gzip"]
)
def test_pythons_http_exporter_delivers_spans(compression: Compression) -> None:
    accept = Recorder()

    results = over_http(
        accept, lambda port: send_spans(http_spans(port, compression), "first", "second")
    )

    assert results == [SpanExportResult.SUCCESS] * 2
    assert accept.span_names == ["first", "second"]


@pytest.mark.parametrize(
    "compression", [GrpcCompression.NoCompression, GrpcCompression.Gzip], ids=["plain", "gzip"]
)
def test_pythons_grpc_exporter_delivers_spans(compression: GrpcCompression) -> None:
    accept = Recorder()

    results = over_grpc(
        accept, lambda port: send_spans(grpc_spans(port, compression), "first", "second")
    )

    assert results == [SpanExportResult.SUCCESS] * 2
    assert accept.span_names == ["first", "second"]


def send_metric(exporter: Any) -> None:
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider(metric_readers=[reader])
    provider.get_meter("test").create_counter("requests").add(17)
    provider.shutdown()


def test_pythons_exporters_deliver_metrics_on_both_doors() -> None:
    http_accept, grpc_accept = Recorder(), Recorder()

    over_http(
        http_accept,
        lambda port: send_metric(
            HttpMetricExporter(
                endpoint=f"http://127.0.0.1:{port}/v1/metrics", compression=Compression.Gzip
            )
        ),
    )
    over_grpc(
        grpc_accept,
        lambda port: send_metric(GrpcMetricExporter(endpoint=f"127.0.0.1:{port}", insecure=True)),
    )

    assert http_accept.metric_names == grpc_accept.metric_names == ["requests"]


class BusyOnce(Recorder):
    """Asks the first sender to come again at once."""

    async def __call__(self, *args: Any) -> Accepted:
        accepted = await super().__call__(*args)
        if len(self.taken) == 1:
            raise Busy("not now", 0.01)
        return accepted


def test_an_exporter_that_is_asked_to_wait_comes_again() -> None:
    http_accept, grpc_accept = BusyOnce(), BusyOnce()

    by_http = over_http(
        http_accept, lambda port: send_spans(http_spans(port, Compression.Gzip), "kept")
    )
    by_grpc = over_grpc(
        grpc_accept, lambda port: send_spans(grpc_spans(port, GrpcCompression.Gzip), "kept")
    )

    assert by_http == by_grpc == [SpanExportResult.SUCCESS]
    assert http_accept.span_names == grpc_accept.span_names == ["kept", "kept"]


@pytest.mark.parametrize("known", [False, True], ids=["no token", "no right"])
def test_an_exporter_that_is_refused_gives_up_at_once_on_both_doors(known: bool) -> None:
    accept = Recorder()
    http_gate, grpc_gate = FakeGate(Refusal(known, "no")), FakeGate(Refusal(known, "no"))

    by_http = over_http(
        accept,
        lambda port: send_spans(
            http_spans(port, Compression.Gzip, headers={"authorization": "Bearer tb_1"}), "lost"
        ),
        http_gate,
    )
    by_grpc = over_grpc(
        accept,
        lambda port: send_spans(
            grpc_spans(port, GrpcCompression.Gzip, headers={"authorization": "Bearer tb_1"}), "lost"
        ),
        grpc_gate,
    )

    assert by_http == by_grpc == [SpanExportResult.FAILURE]
    assert accept.taken == []
    for gate in (http_gate, grpc_gate):
        assert [headers[b"authorization"] for _, headers, _, _ in gate.seen] == [b"Bearer tb_1"]


def post(body: Any, encoding: str | None, content_type: str, **kwargs: Any) -> Export:
    headers = {"content-type": content_type}
    if encoding is not None:
        headers["content-encoding"] = encoding

    def export(port: int) -> httpx.Response:
        url = f"http://127.0.0.1:{port}/v1/traces"
        return httpx.post(url, content=body, headers=headers, timeout=30, **kwargs)

    return export


def in_pieces(body: bytes) -> Any:
    """Makes the client send it chunked, without a length."""
    for i in range(0, len(body), 10_000):
        yield body[i : i + 10_000]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_413_and_costs_no_more_than_the_limit(
    encoding: str, chunked: bool, content_type: str
) -> None:
    limit = 4 * MIB
    data = bytes(64 * MIB)
    bomb = gzip.compress(data, 6) if encoding == "gzip" else zstd.compress(data)
    del data
    accept = Recorder()

    async def run() -> httpx.Response:
        front = otlp_front(accept, FakeGate(), Limits(body_bytes=limit), None)
        async with http_server(front) as port:
            export = post(in_pieces(bomb) if chunked else bomb, encoding, content_type)
            response: httpx.Response = await asyncio.to_thread(export, port)
            return response

    tracemalloc.start()
    response = asyncio.run(run())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (response.status_code, accept.taken) == (413, [])
    assert response.headers["content-type"] == content_type
    assert peak_bytes < limit * 9 / 8 + 3 * MIB + 4 * len(bomb)


class PeakBudget(Budget):
    """Remembers the most that was ever taken."""

    __slots__ = ("peak_bytes",)

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.peak_bytes = 0

    def take(self, n_bytes: int) -> None:
        super().take(n_bytes)
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)


def test_two_hundred_large_bodies_at_once_stay_inside_the_budget() -> None:
    limits = Limits(body_bytes=4 * MIB, in_flight_bytes=20 * MIB)
    body = gzip.compress(bytes(3 * MIB + 500_000))
    budget, tally = PeakBudget(limits.in_flight_bytes), Tally()

    async def run() -> list[int]:
        accept = Recorder(go_on=asyncio.Event())
        front = otlp_front(accept, FakeGate(), limits, None, budget=budget, tally=tally)
        async with http_server(front) as port, httpx.AsyncClient(timeout=60) as client:

            async def send() -> int:
                answer = await client.post(
                    f"http://127.0.0.1:{port}/v1/traces",
                    content=body,
                    headers={"content-type": PROTOBUF, "content-encoding": "gzip"},
                )
                if answer.status_code == 503:
                    assert answer.headers["retry-after"] == "1"
                    assert accept.go_on is not None
                    accept.go_on.set()  # nobody is let go before somebody was refused
                return answer.status_code

            return await asyncio.gather(*(send() for _ in range(200)))

    codes = asyncio.run(run())

    assert set(codes) == {200, 503}
    assert limits.in_flight_bytes - MIB <= budget.peak_bytes <= limits.in_flight_bytes
    assert budget.used_bytes == 0
    assert tally.answers[Answer("http", "traces", "busy")] == codes.count(503)


def test_a_body_over_the_limit_is_answered_while_the_client_still_sends() -> None:
    response = over_http(Recorder(), post(bytes(65 * MIB), None, PROTOBUF))

    assert response.status_code == 413
    assert b"over 67108864 bytes" in response.content


def raw(*pieces: bytes) -> Export:
    """Write these bytes, then read until the server closes or has answered in full."""

    def export(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            for piece in pieces:
                sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    return export


def test_a_request_cut_in_mid_body_takes_nothing_in_and_leaves_the_door_open() -> None:
    accept = Recorder()
    head = (
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n"
    )
    body = traces("whole")

    def export(port: int) -> bytes:
        for n in range(0, len(body), 9):
            assert raw(head % len(body) + body[:n])(port) == b""
        whole: bytes = raw(head % len(body) + body)(port)
        return whole

    assert over_http(accept, export).startswith(b"HTTP/1.1 200 ")
    assert accept.span_names == ["whole"]


def test_keep_alive_goes_on_after_a_refusal_with_the_body_unread() -> None:
    accept = Recorder()

    def export(port: int) -> list[int]:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            refused = client.post(
                "/v1/traces", content=bytes(MIB), headers={"content-type": "text/plain"}
            )
            taken = client.post(
                "/v1/traces", content=traces("next"), headers={"content-type": PROTOBUF}
            )
            return [refused.status_code, taken.status_code]

    assert over_http(accept, export) == [415, 200]
    assert accept.span_names == ["next"]


def test_a_get_by_hand_reads_as_json_what_to_do() -> None:
    response = over_http(Recorder(), lambda port: httpx.get(f"http://127.0.0.1:{port}/v1/traces"))

    status = json_format.Parse(response.content, status_pb2.Status())
    assert response.status_code == 405
    assert "POST /v1/traces" in status.message
