"""The HTTP door in process: methods, types, encodings, limits, access, answers."""

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.types import ASGIApp

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.doors.access import Refusal, Scope
from tailburn.collector.doors.http import otlp_front
from tailburn.collector.doors.limits import Budget, Limits
from tailburn.collector.doors.tally import Answer as Counted
from tailburn.collector.doors.tally import Tally
from tailburn.collector.errors import BadBody, Busy, IngestError, NoRoom, TooLarge
from tests.collector.doors.support import JSON, PROTOBUF, Answer, FakeGate, Recorder, ask, ask_with

GZIP = ((b"content-encoding", b"gzip"),)
ZSTD = ((b"content-encoding", b"zstd"),)
SMALL = Limits(body_bytes=1000, in_flight_bytes=1500)


def door(
    accept: Recorder | None = None,
    gate: FakeGate | None = None,
    limits: Limits = SMALL,
    app: ASGIApp | None = None,
    budget: Budget | None = None,
    tally: Tally | None = None,
) -> ASGIApp:
    return otlp_front(
        accept or Recorder(),
        gate or FakeGate(),
        limits,
        app,
        budget=budget,
        clock=lambda headers: 1_796_000_000_000_000_017,
        tally=tally,
    )


def status(answer: Answer) -> status_pb2.Status:
    """The body by the decoder that its own Content-Type asks for."""
    if answer.headers[b"content-type"] == JSON.encode():
        return json_format.Parse(answer.body, status_pb2.Status())
    assert answer.headers[b"content-type"] == PROTOBUF.encode()
    return status_pb2.Status.FromString(answer.body)


async def the_app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": b"the app"})


@pytest.mark.parametrize(
    ("path", "signal"), [("/v1/traces", Signal.TRACES), ("/v1/metrics", Signal.METRICS)]
)
@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        (PROTOBUF, Encoding.PROTOBUF),
        (JSON, Encoding.JSON),
        ("application/json; charset=utf-8", Encoding.JSON),
        ("Application/JSON;odata=verbose", Encoding.JSON),
        ("application/x-protobuf ; proto=a.B", Encoding.PROTOBUF),
    ],
)
def test_a_body_is_handed_on_as_it_came(
    path: str, signal: Signal, content_type: str, encoding: Encoding
) -> None:
    accept = Recorder()

    answer = asyncio.run(
        ask(door(accept), b"first ", b"", b"second", path=path, content_type=content_type)
    )

    assert answer.status == 200
    (taken,) = accept.taken
    assert (taken.signal, taken.encoding) == (signal, encoding)
    assert (taken.body, taken.tenant) == (b"first second", "acme")
    assert taken.received_ns == 1_796_000_000_000_000_017


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        (b"gzip", gzip.compress(b"body")),
        (b"GZIP", gzip.compress(b"bo") + gzip.compress(b"dy")),
        (b"zstd", zstd.compress(b"body")),
        (b"identity", b"body"),
        (b" Identity ", b"body"),
    ],
)
def test_every_promised_encoding_is_unpacked(encoding: bytes, packed: bytes) -> None:
    accept = Recorder()
    chunks = [packed[i : i + 7] for i in range(0, len(packed), 7)]

    answer = asyncio.run(ask(door(accept), *chunks, headers=((b"content-encoding", encoding),)))

    assert answer.status == 200
    assert [taken.body for taken in accept.taken] == [b"body"]


@pytest.mark.parametrize(("content_type", "body"), [(PROTOBUF, b""), (JSON, b"{}")])
def test_success_answers_in_the_encoding_of_the_request(content_type: str, body: bytes) -> None:
    answer = asyncio.run(ask(door(), b"x", content_type=content_type))

    assert (answer.status, answer.body) == (200, body)
    assert answer.headers[b"content-type"] == content_type.encode()
    assert answer.headers[b"content-length"] == str(len(body)).encode()


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_an_empty_request_succeeds_and_troubles_nobody(content_type: str) -> None:
    accept = Recorder(BadBody("never called"))

    answer = asyncio.run(ask(door(accept), b"", content_type=content_type))

    assert (answer.status, accept.taken) == (200, [])


def test_partial_success_is_told() -> None:
    accept = Recorder(Accepted(3, "three ids of 32 bytes"))

    answer = asyncio.run(ask(door(accept), b"x", content_type=JSON))

    response = json_format.Parse(answer.body, ExportTraceServiceResponse())
    assert answer.status == 200
    assert response.partial_success.rejected_spans == 3
    assert json.loads(answer.body)["partialSuccess"]["rejectedSpans"] == "3"


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("error", "http_status", "code", "retry_after"),
    [
        (BadBody("tag 7 of what?"), 400, code_pb2.INVALID_ARGUMENT, None),
        (TooLarge("too many attributes"), 413, code_pb2.RESOURCE_EXHAUSTED, None),
        (Busy("log is behind", 0.2), 503, code_pb2.UNAVAILABLE, b"1"),
        (NoRoom("the disk is full", 60.0), 503, code_pb2.UNAVAILABLE, b"2"),
    ],
)
def test_what_lies_behind_the_door_decides_the_answer(
    error: IngestError, http_status: int, code: int, retry_after: bytes | None, content_type: str
) -> None:
    answer = asyncio.run(ask(door(Recorder(error)), b"x", content_type=content_type))

    assert answer.status == http_status
    assert answer.headers[b"content-type"] == content_type.encode()
    assert answer.headers.get(b"retry-after") == retry_after
    assert (status(answer).code, status(answer).message) == (code, str(error))


def test_a_defect_is_logged_and_may_be_retried(caplog: pytest.LogCaptureFixture) -> None:
    answer = asyncio.run(ask(door(Recorder(KeyError("secret detail"))), b"x"))

    assert answer.status == 503
    assert b"secret detail" not in answer.body
    assert "KeyError" in caplog.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_told_which_one_to_use(method: str) -> None:
    answer = asyncio.run(ask(door(), method=method, content_type=None))

    assert answer.status == 405
    assert answer.headers[b"allow"] == b"POST"
    assert "use POST" in status(answer).message


@pytest.mark.parametrize(
    ("content_type", "answered_in"),
    [
        (None, JSON),
        ("", JSON),
        ("text/plain", JSON),
        ("application/jsonl", JSON),
        ("application/x-www-form-urlencoded", JSON),
        ("application/protobuf", PROTOBUF),
        ("application/vnd.google.protobuf", PROTOBUF),
    ],
)
def test_other_content_types_are_refused_in_the_nearest_one(
    content_type: str | None, answered_in: str
) -> None:
    accept = Recorder()

    answer = asyncio.run(ask(door(accept), b"x", content_type=content_type))

    assert (answer.status, accept.taken) == (415, [])
    assert answer.headers[b"content-type"] == answered_in.encode()
    assert "want application/x-protobuf or application/json" in status(answer).message


@pytest.mark.parametrize(
    "headers",
    [
        ((b"content-encoding", b"deflate"),),
        ((b"content-encoding", b"snappy"),),
        ((b"content-encoding", b"br"),),
        ((b"content-encoding", b"gzip, gzip"),),
        ((b"content-encoding", b"gzip"), (b"content-encoding", b"zstd")),
    ],
)
def test_other_encodings_are_refused_with_those_that_work(
    headers: tuple[tuple[bytes, bytes], ...],
) -> None:
    answer = asyncio.run(ask(door(), b"x", headers=headers))

    assert answer.status == 415
    assert answer.headers[b"accept-encoding"] == b"identity, gzip, zstd"
    assert "want identity, gzip or zstd" in status(answer).message


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ((b"x" * 600, b"x" * 600), ()),
        ((gzip.compress(bytes(100_000)),), GZIP),
        ((zstd.compress(bytes(100_000)),), ZSTD),
        ((b"",), ((b"content-length", b"1001"),)),
        ((b"",), ((b"content-length", b"9" * 5000),)),
    ],
    ids=["chunks", "gzip bomb", "zstd bomb", "declared", "declared beyond numbers"],
)
def test_over_the_limit_is_413_however_it_comes(
    chunks: tuple[bytes, ...], headers: tuple[tuple[bytes, bytes], ...], content_type: str
) -> None:
    accept, budget = Recorder(), Budget(10**6)
    front = door(accept, budget=budget)

    answer = asyncio.run(ask(front, *chunks, headers=headers, content_type=content_type))

    assert (answer.status, accept.taken, budget.used_bytes) == (413, [], 0)
    assert status(answer).code == code_pb2.RESOURCE_EXHAUSTED
    assert b"retry-after" not in answer.headers


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    accept = Recorder()
    declared = ((b"content-length", b"0001000"),)

    assert asyncio.run(ask(door(accept), b"x" * 1000, headers=declared)).status == 200
    assert len(accept.taken[0].body) == 1000


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ((gzip.compress(b"body")[:-3],), GZIP),
        ((gzip.compress(b"body")[:12],), GZIP),
        ((b"not gzip at all",), GZIP),
        ((b"",), GZIP),
        ((zstd.compress(b"body")[:-1],), ZSTD),
        ((bytes([0x28, 0xB5, 0x2F, 0xFD, 0, 19 << 3, 1, 0, 0]),), ZSTD),
        ((b"x",), ((b"content-length", b"-1"),)),
    ],
    ids=[
        "gzip without its end",
        "gzip cut",
        "no gzip",
        "nothing",
        "zstd cut",
        "zstd window of 512 MiB",
        "no length",
    ],
)
def test_broken_streams_are_400_with_a_status(
    chunks: tuple[bytes, ...], headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    accept = Recorder()

    answer = asyncio.run(ask(door(accept), *chunks, headers=headers, content_type=JSON))

    assert (answer.status, accept.taken) == (400, [])
    assert status(answer).code == code_pb2.INVALID_ARGUMENT


def test_bodies_share_one_budget_and_the_one_too_many_is_asked_to_wait() -> None:
    async def run() -> tuple[Answer, Answer, Answer]:
        accept = Recorder(go_on=asyncio.Event())
        front = door(accept)
        first = asyncio.create_task(ask(front, b"x" * 900))
        await accept.arrived.wait()
        second = await ask(front, b"y" * 900)
        assert accept.go_on is not None
        accept.go_on.set()
        return await first, second, await ask(front, b"y" * 900)

    first, second, again = asyncio.run(run())

    assert (first.status, second.status, again.status) == (200, 503, 200)
    assert second.headers[b"retry-after"] == b"1"
    assert "900 of 1500 bytes are in flight" in status(second).message


@pytest.mark.parametrize(
    ("refusal", "http_status"), [(Refusal(False, "who?"), 401), (Refusal(True, "not you"), 403)]
)
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_access_is_decided_before_a_byte_is_read(
    refusal: Refusal, http_status: int, content_type: str
) -> None:
    async def never_read() -> Any:
        raise AssertionError("the body was read")

    gate = FakeGate(refusal)
    front = door(gate=gate)
    answer = asyncio.run(
        ask_with(front, never_read, content_type=content_type, headers=ZSTD, peer="192.0.2.7")
    )

    assert answer is not None
    assert answer.status == http_status
    assert (b"www-authenticate" in answer.headers) is (http_status == 401)
    assert status(answer).message == refusal.reason
    assert [(peer, scope, shows) for peer, _, scope, shows in gate.seen] == [
        ("192.0.2.7", Scope.INGEST, True)
    ]


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        ("POST", "/", "/v1/traces"),
        ("POST", "/v1/trace", "/v1/traces"),
        ("POST", "/v1/traces/", "/v1/traces"),
        ("GET", "/v1/", "/v1/traces"),
        ("POST", "/v1/logs", "logs are not taken here"),
        ("POST", "/v1development/profiles", "profiles are not taken here"),
    ],
)
def test_wrong_paths_of_exporters_get_a_hint(method: str, path: str, hint: str) -> None:
    front = door(app=the_app)

    answer = asyncio.run(ask(front, b"x", method=method, path=path))

    assert answer.status == 404
    assert hint in status(answer).message


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/api/x"), ("GET", "/v2")])
def test_everything_else_is_passed_on(method: str, path: str) -> None:
    passed = asyncio.run(ask(door(app=the_app), method=method, path=path))
    alone = asyncio.run(ask(door(app=None), method=method, path=path))

    assert (passed.status, passed.body) == (299, b"the app")
    assert alone.status == 404


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def silence() -> Any:
        await asyncio.Event().wait()

    budget = Budget(10**6)
    front = door(limits=Limits(read_timeout_s=0.01), budget=budget)
    answer = asyncio.run(ask_with(front, silence, content_type=JSON))

    assert answer is not None
    assert (answer.status, answer.headers[b"connection"]) == (408, b"close")
    assert status(answer).code == code_pb2.DEADLINE_EXCEEDED
    assert budget.used_bytes == 0


def test_a_time_out_behind_the_door_is_not_taken_for_a_slow_sender() -> None:
    answer = asyncio.run(ask(door(Recorder(TimeoutError("of the disk"))), b"x"))

    assert answer.status == 503


def test_a_sender_that_goes_away_leaves_nothing_behind() -> None:
    messages: list[Any] = [
        {"type": "http.request", "body": b"half of", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    accept, budget, tally = Recorder(), Budget(10**6), Tally()
    answer = asyncio.run(ask_with(door(accept, budget=budget, tally=tally), receive))

    assert (answer, accept.taken, budget.used_bytes) == (None, [], 0)
    assert tally.answers == {Counted("http", "traces", "disconnected"): 1}


@settings(max_examples=150, deadline=None)
@given(
    method=st.sampled_from(["POST", "POST", "POST", "GET", "PATCH"]),
    path=st.sampled_from(["/v1/traces", "/v1/metrics", "/v1/logs", "/", "/v1/\x00"]),
    content_type=st.sampled_from([PROTOBUF, JSON, "", "text/plain", "application/json;q"]),
    encoding=st.sampled_from([None, b"gzip", b"zstd", b"identity", b"br", b"\xff", b","]),
    length=st.sampled_from(
        [None, b"", b"0", b"7", b"-0", b"1e9", b"\xb2", b"99999999999999999999"]
    ),
    chunks=st.lists(st.binary(max_size=800), max_size=3),
    packed=st.sampled_from([None, gzip.compress, zstd.compress]),
)
def test_whatever_comes_gets_an_exact_answer_and_leaves_nothing_behind(
    method: str,
    path: str,
    content_type: str,
    encoding: bytes | None,
    length: bytes | None,
    chunks: list[bytes],
    packed: Callable[[bytes], bytes] | None,
) -> None:
    accept, budget = Recorder(), Budget(1200)
    headers = [(b"content-encoding", encoding)] if encoding is not None else []
    headers += [(b"content-length", length)] if length is not None else []
    body = [packed(chunk) for chunk in chunks] if packed else chunks

    answer = asyncio.run(
        ask(
            door(accept, budget=budget),
            *body,
            method=method,
            path=path,
            content_type=content_type,
            headers=tuple(headers),
        )
    )

    assert budget.used_bytes == 0
    assert answer.headers[b"content-length"] == b"%d" % len(answer.body)
    if answer.status == 200:
        assert [taken.body for taken in accept.taken] in ([], [b"".join(chunks)], [b"".join(body)])
    else:
        assert answer.status in (400, 404, 405, 413, 415, 503)
        assert status(answer).message and not accept.taken


def test_every_answer_is_counted_by_its_reason() -> None:
    tally = Tally()

    async def run() -> None:
        packed = gzip.compress(b"x" * 500)
        await ask(door(tally=tally), packed, headers=GZIP)
        await ask(door(Recorder(Accepted(1, "one")), tally=tally), b"x", path="/v1/metrics")
        await ask(door(tally=tally), bytes(2000))
        await ask(door(tally=tally), method="GET")
        await ask(door(tally=tally), path="/")
        assert tally.wire_bytes == {"http": len(packed) + 1}

    asyncio.run(run())

    assert tally.body_bytes == {"http": 501}
    assert tally.answers == {
        Counted("http", "traces", "ok"): 1,
        Counted("http", "metrics", "partial"): 1,
        Counted("http", "traces", "too_large"): 1,
        Counted("http", "traces", "method"): 1,
        Counted("http", "none", "path"): 1,
    }
