"""The gRPC door over a real socket: answers, trailers, limits, cancelling, draining."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.doors.access import Refusal, Scope
from tailburn.collector.doors.grpc import READ_TICKET_BYTES, GrpcDoor
from tailburn.collector.doors.limits import Budget, Limits
from tailburn.collector.doors.tally import Answer as Counted
from tailburn.collector.doors.tally import Tally
from tailburn.collector.errors import BadBody, Busy, IngestError, NoRoom, TooLarge
from tests.collector.doors import http2
from tests.collector.doors.support import FakeGate, Recorder, grpc_server, traces

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
SMALL = Limits(body_bytes=1000)


def door(
    accept: Recorder | None = None,
    gate: FakeGate | None = None,
    limits: Limits = SMALL,
    budget: Budget | None = None,
    tally: Tally | None = None,
) -> GrpcDoor:
    return GrpcDoor(
        accept or Recorder(),
        gate or FakeGate(),
        limits,
        budget=budget,
        clock=lambda headers: 1_796_000_000_000_000_019,
        tally=tally,
    )


def run(served: GrpcDoor, talk: Callable[[int], Awaitable[Any]]) -> Any:
    async def both() -> Any:
        async with grpc_server(served) as port:
            return await talk(port)

    return asyncio.run(both())


def call(served: GrpcDoor, body: bytes, method: str = TRACES, **kwargs: Any) -> bytes:
    """One unary call; raises AioRpcError where it does not succeed."""

    async def talk(port: int) -> bytes:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            return await channel.unary_unary(method)(body, timeout=20, **kwargs)

    answer: bytes = run(served, talk)
    return answer


def refusal_of(served: GrpcDoor, body: bytes, **kwargs: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        call(served, body, **kwargs)
    return caught.value


def trailers(error: grpc.aio.AioRpcError) -> dict[str, bytes]:
    return dict(error.trailing_metadata())


@pytest.mark.parametrize(("method", "signal"), [(TRACES, Signal.TRACES), (METRICS, Signal.METRICS)])
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_message_is_handed_on_as_it_was_before_compression(
    method: str, signal: Signal, compression: grpc.Compression
) -> None:
    accept = Recorder()
    body = traces(*["again and again"] * 15)

    assert call(door(accept), body, method, compression=compression) == b""

    (taken,) = accept.taken
    assert (taken.signal, taken.encoding) == (signal, Encoding.PROTOBUF)
    assert (taken.body, taken.tenant) == (body, "acme")
    assert taken.received_ns == 1_796_000_000_000_000_019


def test_an_empty_message_succeeds_and_troubles_nobody() -> None:
    accept = Recorder(BadBody("never called"))

    assert call(door(accept), b"") == b""
    assert accept.taken == []


def test_partial_success_is_an_answer_and_no_error() -> None:
    spans = ExportTraceServiceResponse.FromString(
        call(door(Recorder(Accepted(3, "no ids"))), b"x", TRACES)
    )
    points = ExportMetricsServiceResponse.FromString(
        call(door(Recorder(Accepted(0, "old"))), b"x", METRICS)
    )

    assert spans.partial_success.rejected_spans == 3
    assert spans.partial_success.error_message == "no ids"
    assert points.partial_success.error_message == "old"


@pytest.mark.parametrize(
    ("error", "code", "retry_after_ns"),
    [
        (BadBody("tag 7 of what?"), grpc.StatusCode.INVALID_ARGUMENT, None),
        (TooLarge("too many attributes"), grpc.StatusCode.RESOURCE_EXHAUSTED, None),
        (Busy("log is behind", 0.25), grpc.StatusCode.UNAVAILABLE, 250_000_000),
        (NoRoom("the disk is full", 60.0), grpc.StatusCode.UNAVAILABLE, 2_000_000_000),
        (KeyError("a defect"), grpc.StatusCode.UNAVAILABLE, 2_000_000_000),
    ],
)
def test_each_cause_has_its_code_and_a_retry_is_told_under_both_keys(
    error: Exception, code: grpc.StatusCode, retry_after_ns: int | None
) -> None:
    refused = refusal_of(door(Recorder(error)), b"x")

    assert refused.code() is code
    told = trailers(refused)
    status = status_pb2.Status.FromString(told["grpc-status-details-bin"])
    assert (status.code, status.message) == (code.value[0], refused.details())
    if isinstance(error, IngestError):
        assert refused.details() == str(error)
    if retry_after_ns is None:
        assert "google.rpc.retryinfo-bin" not in told
        return
    for_python = error_details_pb2.RetryInfo.FromString(told["google.rpc.retryinfo-bin"])
    for_others = error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(for_others)
    assert for_python.retry_delay.ToNanoseconds() == retry_after_ns
    assert for_others == for_python


@pytest.mark.parametrize(
    ("body", "compression"),
    [
        (b"x" * 1001, grpc.Compression.NoCompression),
        (bytes(1001), grpc.Compression.Gzip),
        (bytes(50 << 20), grpc.Compression.Gzip),
        (b"x" * (3 << 20), grpc.Compression.NoCompression),
    ],
    ids=["one byte over", "one byte over, packed", "bomb", "over what gRPC itself takes"],
)
def test_over_the_limit_is_resource_exhausted_and_never_retried(
    body: bytes, compression: grpc.Compression
) -> None:
    accept, budget = Recorder(), Budget(256 << 20)

    refused = refusal_of(door(accept, budget=budget), body, compression=compression)

    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in trailers(refused)
    assert b"RetryInfo" not in trailers(refused).get("grpc-status-details-bin", b"")
    assert (accept.taken, budget.used_bytes) == ([], 0)


def test_a_message_of_exactly_the_limit_is_taken() -> None:
    accept = Recorder()

    call(door(accept), b"x" * 1000)
    call(door(accept), b"x" * 1000, compression=grpc.Compression.Gzip)

    assert [len(taken.body) for taken in accept.taken] == [1000, 1000]


def test_a_broken_gzip_message_is_an_invalid_argument() -> None:
    refused = refusal_of(door(), gzip.compress(b"body")[:-5])

    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.details() == "the gzip stream is cut short"


@pytest.mark.parametrize(
    ("kwargs", "why"),
    [
        ({"method": LOGS}, "Method not found!"),
        ({"compression": grpc.Compression.Deflate}, "deflate"),
    ],
)
def test_what_is_not_taken_is_unimplemented(kwargs: dict[str, Any], why: str) -> None:
    refused = refusal_of(door(), bytes(500), **kwargs)

    assert refused.code() is grpc.StatusCode.UNIMPLEMENTED
    assert why in (refused.details() or "")


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (Refusal(False, "who?"), grpc.StatusCode.UNAUTHENTICATED),
        (Refusal(True, "not you"), grpc.StatusCode.PERMISSION_DENIED),
    ],
)
def test_a_refusal_has_its_code_and_reason(refusal: Refusal, code: grpc.StatusCode) -> None:
    gate = FakeGate(refusal)

    refused = refusal_of(
        door(gate=gate), b"x", metadata=(("authorization", "Bearer tb_x"), ("some-bin", b"\xff"))
    )

    assert (refused.code(), refused.details()) == (code, refusal.reason)
    ((peer, headers, scope, shows_host),) = gate.seen
    assert (peer, scope, shows_host) == ("127.0.0.1", Scope.INGEST, False)
    assert headers[b"authorization"] == b"Bearer tb_x"
    assert headers[b"some-bin"] == b"\xff"


def test_access_is_decided_before_the_message_comes() -> None:
    async def talk(port: int) -> list[http2.Frame]:
        reader, writer = await http2.open_call(port, TRACES)
        frames = await http2.answer(reader)
        writer.close()
        return frames

    (only,) = run(door(gate=FakeGate(Refusal(False, "who?"))), talk)
    assert b"who?" in only.payload


@pytest.mark.parametrize(
    "error", [BadBody("bad"), TooLarge("big"), Busy("busy"), KeyError("defect")]
)
def test_errors_are_trailers_only(error: Exception) -> None:
    async def talk(port: int) -> list[http2.Frame]:
        reader, writer = await http2.open_call(port, TRACES)
        writer.write(http2.message(b"x"))
        frames = await http2.answer(reader)
        writer.close()
        return frames

    (only,) = run(door(Recorder(error)), talk)

    assert only.kind == http2.HEADERS
    assert only.flags & http2.END_STREAM


def test_success_is_headers_a_message_and_trailers() -> None:
    async def talk(port: int) -> list[http2.Frame]:
        reader, writer = await http2.open_call(port, TRACES)
        writer.write(http2.message(b"x"))
        frames = await http2.answer(reader)
        writer.close()
        return frames

    kinds = [frame.kind for frame in run(door(), talk)]
    assert kinds == [http2.HEADERS, http2.DATA, http2.HEADERS]


def test_a_message_that_does_not_come_is_given_up() -> None:
    budget = Budget(2 * READ_TICKET_BYTES)

    async def talk(port: int) -> list[http2.Frame]:
        reader, writer = await http2.open_call(port, TRACES)
        frames = await http2.answer(reader)
        writer.close()
        return frames

    (only,) = run(door(limits=Limits(read_timeout_s=0.05), budget=budget), talk)
    assert b"did not arrive" in only.payload
    assert budget.used_bytes == 0


def test_a_call_without_a_message_is_an_invalid_argument() -> None:
    async def talk(port: int) -> list[http2.Frame]:
        reader, writer = await http2.open_call(port, TRACES)
        writer.write(http2.frame(http2.DATA, http2.END_STREAM, 1))
        frames = await http2.answer(reader)
        writer.close()
        return frames

    (only,) = run(door(), talk)
    assert b"without a message" in only.payload


def test_calls_share_one_budget_and_the_one_too_many_is_asked_to_wait() -> None:
    accept = Recorder(go_on=asyncio.Event())
    served = door(accept, limits=Limits(in_flight_bytes=READ_TICKET_BYTES))

    async def talk(port: int) -> tuple[bytes, grpc.StatusCode]:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            export = channel.unary_unary(TRACES)
            first = export(b"x" * 900, timeout=20)
            await accept.arrived.wait()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await export(b"y" * 900, timeout=20)
            assert accept.go_on is not None
            accept.go_on.set()
            return await first, caught.value.code()

    assert run(served, talk) == (b"", grpc.StatusCode.UNAVAILABLE)


def test_a_sender_that_cancels_ends_the_work_and_gives_its_bytes_back() -> None:
    budget, tally = Budget(10**7), Tally()
    ended = asyncio.Event()

    class Waiting(Recorder):
        async def __call__(self, *args: Any) -> Accepted:
            self.arrived.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError("nobody waits")

    accept = Waiting()

    async def talk(port: int) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            sent = channel.unary_unary(TRACES)(b"x" * 900, timeout=20)
            await accept.arrived.wait()
            assert budget.used_bytes == 900
            sent.cancel()
            with suppress(asyncio.CancelledError):
                await sent
            await ended.wait()

    run(door(accept, budget=budget, tally=tally), talk)
    assert budget.used_bytes == 0
    assert tally.answers == {Counted("grpc", "traces", "disconnected"): 1}


def test_draining_lets_calls_in_flight_end() -> None:
    accept = Recorder(go_on=asyncio.Event())
    served = door(accept)

    async def talk(port: int) -> bytes:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            in_flight = channel.unary_unary(TRACES)(b"x", timeout=20)
            await accept.arrived.wait()
            stopping = asyncio.create_task(served.stop(20))
            await asyncio.sleep(0)
            assert accept.go_on is not None
            accept.go_on.set()
            await stopping
            answer: bytes = await in_flight
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary(TRACES)(b"x", timeout=20)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            return answer

    assert run(served, talk) == b""


def test_a_taken_port_is_said_and_not_shared() -> None:
    async def talk(port: int) -> None:
        with pytest.raises(OSError, match=f"can't listen on 127.0.0.1:{port}"):
            await door().start("127.0.0.1", port)

    run(door(), talk)


def test_every_answer_is_counted_by_its_reason() -> None:
    tally = Tally()
    body = bytes(900)

    call(door(tally=tally), body, compression=grpc.Compression.Gzip)
    call(door(Recorder(Accepted(1, "one")), tally=tally), b"x", METRICS)
    refusal_of(door(Recorder(Busy("busy")), tally=tally), b"x")

    assert tally.answers == {
        Counted("grpc", "traces", "ok"): 1,
        Counted("grpc", "metrics", "partial"): 1,
        Counted("grpc", "traces", "busy"): 1,
    }
    assert tally.body_bytes == {"grpc": 902}
    assert tally.wire_bytes["grpc"] < 100


def test_codes_are_those_of_google_rpc() -> None:
    assert {code.name: code.value[0] for code in grpc.StatusCode} == dict(code_pb2.Code.items())
