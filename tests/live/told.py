"""A course of traffic whose time its sender tells: the same bodies at the same told times, always.

Each told minute is whole in itself: engines' spans and then their clients' in its first half, and
a span of no request at `_LAST_S`, by which all requests of the minute have closed. So what was
known at the end of a minute doesn't depend on how fast the minutes are sent.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread

import httpx
import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from tests.live.service import Service

NS = 1_000_000_000
MINUTE_NS = 60 * NS
BEGIN_NS = 1_780_272_000 * NS
"""The first minute of a day, and of an hour."""

MODELS = ("alpha", "beta")
SLOW_AT, FAILING_AT = 0.5, 0.75
"""Where in the course `alpha` gets slow and `beta` fails."""

CLOSES = ("--clock", "telemetry", "--idle-close-s", "4", "--rootless-close-s", "3600")
"""A request closes once its client's span is there, however long its sender is away."""

_BATCHES_S = (2, 8, 14)
_LAST_S = 26
_REQUESTS = 8  # of a batch
REQUESTS_A_MINUTE = len(_BATCHES_S) * _REQUESTS
_LOST_ACKNOWLEDGEMENT = 37  # each so manieth body is sent once more though it was taken
_RETRY_S = 0.05


@dataclass(frozen=True)
class Body:
    """What is sent at a told time."""

    told_ns: int
    content: bytes


@dataclass(frozen=True)
class _Requests:
    """A batch, a value per request."""

    first: int
    start_ns: int
    ttft_s: list[float]
    total_s: list[float]
    tokens: list[int]
    failed: list[bool]


def course(minutes: int) -> list[Body]:
    """Bodies in the order in which they are sent."""
    chance = np.random.default_rng(minutes)
    return [body for minute in range(minutes) for body in _minute(minute, minutes, chance)]


def end_ns(minutes: int) -> int:
    """The end of the last whole minute that is evaluated: the last that is told has just begun."""
    return BEGIN_NS + (minutes - 1) * MINUTE_NS


def _minute(minute: int, minutes: int, chance: np.random.Generator) -> Iterator[Body]:
    begin_ns = BEGIN_NS + minute * MINUTE_NS
    before: _Requests | None = None
    for number, at_s in enumerate((*_BATCHES_S, _BATCHES_S[-1] + 6)):
        at_ns = begin_ns + at_s * NS
        batch = None
        if number < len(_BATCHES_S):
            first = (minute * len(_BATCHES_S) + number) * _REQUESTS
            batch = _batch(first, at_ns, minute / minutes, chance)
        request = ExportTraceServiceRequest()
        if batch is not None:
            _engine_spans(_scope(request, "vllm", "vllm.llm_engine"), batch)
        if before is not None:
            _client_spans(_scope(request, "app", "app"), before)
        before = batch
        yield Body(at_ns, request.SerializeToString())
    at_ns = begin_ns + _LAST_S * NS
    request = ExportTraceServiceRequest()
    span = _scope(request, "nightly", "nightly").spans.add(name="vacuum", kind=1)
    span.trace_id, span.span_id = (1 << 100 | minute).to_bytes(16, "big"), b"n" * 8
    span.start_time_unix_nano, span.end_time_unix_nano = at_ns - NS, at_ns
    yield Body(at_ns, request.SerializeToString())


def _batch(first: int, now_ns: int, at: float, chance: np.random.Generator) -> _Requests:
    ttft_s = chance.lognormal(np.log(0.25), 0.3, _REQUESTS)
    tokens = chance.integers(100, 2_000, _REQUESTS)
    if SLOW_AT <= at < SLOW_AT + 0.15:
        ttft_s[:: len(MODELS)] *= 8
    failed = np.zeros(_REQUESTS, np.bool_)
    if FAILING_AT <= at < FAILING_AT + 0.1:
        failed[1 :: len(MODELS)] = chance.random(_REQUESTS // len(MODELS)) < 0.6
    total_s = np.where(failed, 0.05, ttft_s + 1.0)
    return _Requests(
        first, now_ns - 5 * NS, ttft_s.tolist(), total_s.tolist(), tokens.tolist(), failed.tolist()
    )


def _scope(request: ExportTraceServiceRequest, service: str, scope: str) -> ScopeSpans:
    of = request.resource_spans.add()
    of.resource.attributes.add(key="service.name").value.string_value = service
    spans = of.scope_spans.add()
    spans.scope.name = scope
    return spans


def _engine_spans(scope: ScopeSpans, batch: _Requests) -> None:
    for i, (ttft_s, total_s) in enumerate(zip(batch.ttft_s, batch.total_s, strict=True)):
        span = _span(scope, batch, i, "llm_request", b"e", total_s - 0.02)
        span.kind = Span.SPAN_KIND_SERVER
        span.parent_span_id = _id(b"c", batch.first + i)
        span.start_time_unix_nano += 10_000_000
        if not batch.failed[i]:
            key = "gen_ai.latency.time_to_first_token"
            span.attributes.add(key=key).value.double_value = ttft_s - 0.02


def _client_spans(scope: ScopeSpans, batch: _Requests) -> None:
    for i, (ttft_s, total_s) in enumerate(zip(batch.ttft_s, batch.total_s, strict=True)):
        span = _span(scope, batch, i, "chat", b"c", total_s)
        span.kind = Span.SPAN_KIND_CLIENT
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        if batch.failed[i]:
            span.status.code = Status.STATUS_CODE_ERROR
        else:
            key = "gen_ai.response.time_to_first_chunk"
            span.attributes.add(key=key).value.double_value = ttft_s
            span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 64


def _span(
    scope: ScopeSpans, batch: _Requests, i: int, name: str, kind: bytes, lasts_s: float
) -> Span:
    number = batch.first + i
    span: Span = scope.spans.add(name=name)
    span.trace_id, span.span_id = _id(b"t", number) + _id(b"r", number), _id(kind, number)
    span.start_time_unix_nano = batch.start_ns
    span.end_time_unix_nano = batch.start_ns + round(lasts_s * NS)
    model = MODELS[number % len(MODELS)]
    span.attributes.add(key="gen_ai.request.model").value.string_value = model
    span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = batch.tokens[i]
    return span


def _id(kind: bytes, number: int) -> bytes:
    return kind + number.to_bytes(7, "big")


class Sender(Thread):
    """Sends the bodies one after another, each until it is acknowledged."""

    def __init__(self, service: Service, bodies: list[Body], pause_s: float = 0.0) -> None:
        super().__init__(name="sender")
        self.acknowledged = 0
        self.again = 0  # bodies sent more than once
        self.slowest_s = 0.0  # until an answer
        self._service = service
        self._bodies = bodies
        self._pause_s = pause_s
        self._given_up = Event()

    def __enter__(self) -> "Sender":
        self.start()
        return self

    def __exit__(self, *of: object) -> None:
        self._given_up.set()
        self.join()

    def run(self) -> None:
        with httpx.Client(trust_env=False, timeout=30) as client:
            for number, body in enumerate(self._bodies):
                times = 2 if number % _LOST_ACKNOWLEDGEMENT == 0 else 1
                for _ in range(times):
                    if not self._sent(client, body):
                        return
                self.again += times - 1
                self.acknowledged += 1
                time.sleep(self._pause_s)

    def _sent(self, client: httpx.Client, body: Body) -> bool:
        while not self._is_taken(client, body):
            self.again += 1
            if self._given_up.wait(_RETRY_S):
                return False
        return True

    def _is_taken(self, client: httpx.Client, body: Body) -> bool:
        began_s = time.monotonic()
        try:
            answer = client.post(
                f"{self._service.http}/v1/traces",
                content=body.content,
                headers={
                    "content-type": "application/x-protobuf",
                    "x-tailburn-received-unix-ns": str(body.told_ns),
                },
            )
        except httpx.TransportError:
            return False
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
        return answer.status_code == 200
