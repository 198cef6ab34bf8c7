"""Recordings sent to a service: in order, shifted to now, patient with a busy one."""

import gzip
import json
import time
from pathlib import Path

import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.errors import UserError
from tailburn.app.replay import sending
from tailburn.app.replay.sending import send

RECORDED_NS = 1_700_000_000_000_000_000


class Service:
    """Answers with what it is told to, in turn, then with 200; keeps what it was sent."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answers.pop(0) if self.answers else httpx.Response(200)

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self))

    def ends_ns(self) -> list[int]:
        ends = []
        for request in self.requests:
            packed = request.headers.get("content-encoding") == "gzip"
            body = gzip.decompress(request.content) if packed else request.content
            message = ExportTraceServiceRequest.FromString(body)
            ends.append(message.resource_spans[0].scope_spans[0].spans[0].end_time_unix_nano)
        return ends


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, offset_ns in ((1, 0), (2, 40_000_000)):
        request = ExportTraceServiceRequest()
        span = request.resource_spans.add().scope_spans.add().spans.add()
        span.end_time_unix_nano = RECORDED_NS + offset_ns
        header = {
            "received_unix_ns": RECORDED_NS + offset_ns,
            "content_encoding": "gzip" if number == 2 else None,
        }
        body = request.SerializeToString()
        (tmp_path / f"{number}.bin").write_bytes(gzip.compress(body) if number == 2 else body)
        (tmp_path / f"{number}.json").write_text(json.dumps(header))
    return tmp_path


def test_all_times_move_by_one_constant_and_the_last_becomes_now(folder: Path) -> None:
    service = Service()
    before_ns = time.time_ns()
    sent = send([folder], "http://x/", token="secret", client=service.client())
    first_ns, last_ns = service.ends_ns()
    assert last_ns - first_ns == 40_000_000
    assert before_ns <= last_ns <= time.time_ns()
    assert (sent.bodies, sent.refused) == (2, [])
    assert [str(r.url) for r in service.requests] == ["http://x/v1/traces"] * 2
    assert service.requests[1].headers["content-encoding"] == "gzip"
    assert service.requests[0].headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("speed", [0.5, 4.0])
def test_at_no_pace_does_a_body_come_from_the_future(folder: Path, speed: float) -> None:
    service = Service()
    begun_s = time.monotonic()
    send([folder], "http://x", speed, client=service.client())
    assert time.monotonic() - begun_s >= 0.040 / speed
    assert all(ns <= time.time_ns() for ns in service.ends_ns())


def test_a_body_refused_for_good_is_named_and_the_rest_goes_on(folder: Path) -> None:
    status = Status(code=3, message="not OTLP").SerializeToString()
    refusal = httpx.Response(
        400, content=status, headers={"content-type": "application/x-protobuf"}
    )
    sent = send([folder], "http://x", client=Service(refusal).client())
    assert (sent.bodies, sent.refused) == (1, [f"{folder}/1.bin: 400 not OTLP"])


def test_a_busy_service_is_asked_again(folder: Path) -> None:
    busy = httpx.Response(503, headers={"retry-after": "0"})
    sent = send([folder], "http://x", client=Service(busy, busy).client())
    assert sent.bodies == 2


def test_a_service_that_stays_busy_or_away_ends_the_replay(folder: Path) -> None:
    answers = [httpx.Response(503, headers={"retry-after": "0"})] * sending.TRIES
    with pytest.raises(UserError, match="still 503 after 8 tries"):
        send([folder], "http://x", client=Service(*answers).client())

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    with pytest.raises(UserError, match="http://x/v1/traces: connection refused"):
        send([folder], "http://x", client=httpx.Client(transport=httpx.MockTransport(away)))
