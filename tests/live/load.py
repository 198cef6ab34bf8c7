"""Senders under load that send a body again until it is acknowledged."""

import time
from collections.abc import Iterator
from itertools import count
from threading import Event, Thread

import grpc
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.live.service import EXPORT, Service

_TRACES = 32  # a body
_PAUSE_S = 0.01
_RETRY_S = 0.05

Ids = list[str]


class Load:
    """Two senders over HTTP and one over gRPC.

    Each trace is a client's call and the engine's span below it, in two bodies.
    """

    def __init__(self, service: Service) -> None:
        self._enough, self._given_up = Event(), Event()
        self._senders = [
            _OverHttp(service, 1, self._enough, self._given_up),
            _OverHttp(service, 2, self._enough, self._given_up),
            _OverGrpc(service, 3, self._enough, self._given_up),
        ]
        for sender in self._senders:
            sender.start()

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *of: object) -> None:
        self._enough.set()
        self._given_up.set()

    @property
    def acknowledged(self) -> int:
        """Spans acknowledged so far."""
        return sum(len(sender.acknowledged) for sender in self._senders)

    def finish(self) -> tuple[Ids, Ids]:
        """No more; span ids and trace ids sent, all of them acknowledged."""
        self._enough.set()
        for sender in self._senders:
            sender.join()
        spans = [span for sender in self._senders for span in sender.acknowledged]
        traces = [trace for sender in self._senders for trace in sender.traces]
        return spans, traces


class _Sender(Thread):
    def __init__(self, service: Service, number: int, enough: Event, given_up: Event) -> None:
        super().__init__(name=f"sender-{number}")
        self.acknowledged: Ids = []
        self.traces: Ids = []
        self._service = service
        self._number = number
        self._enough = enough
        self._given_up = given_up

    def run(self) -> None:
        for body, ids, traces in self._bodies():
            while not self.takes(body):
                if self._given_up.wait(_RETRY_S):
                    return
            self.acknowledged += ids
            self.traces += traces
            time.sleep(_PAUSE_S)

    def takes(self, body: bytes) -> bool:
        """Whether the service acknowledged this body."""
        raise NotImplementedError

    def _bodies(self) -> Iterator[tuple[bytes, Ids, Ids]]:
        """Bodies, the spans in them, and the traces that they begin."""
        numbers = count(self._number << 40)
        calls: Ids = []
        while calls or not self._enough.is_set():
            enough = self._enough.is_set()
            request = ExportTraceServiceRequest()
            resource = request.resource_spans.add()
            resource.resource.attributes.add(
                key="service.name"
            ).value.string_value = f"sender-{self._number}"
            spans = resource.scope_spans.add().spans
            begun = [] if enough else [f"{next(numbers):032x}" for _ in range(_TRACES)]
            now_ns = time.time_ns()
            for trace in calls:
                span = spans.add(name="chat tiny-llama", kind=3, trace_id=bytes.fromhex(trace))
                span.span_id = bytes.fromhex("c" + trace[-15:])
                span.start_time_unix_nano, span.end_time_unix_nano = now_ns - 10**9, now_ns
                span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
                span.attributes.add(key="gen_ai.request.model").value.string_value = "tiny-llama"
            for trace in begun:
                span = spans.add(name="llm_request", kind=2, trace_id=bytes.fromhex(trace))
                span.span_id = bytes.fromhex("e" + trace[-15:])
                span.parent_span_id = bytes.fromhex("c" + trace[-15:])
                span.start_time_unix_nano = now_ns - 9 * 10**8
                span.end_time_unix_nano = now_ns - 10**8
            yield request.SerializeToString(), [s.span_id.hex() for s in spans], begun
            calls = begun


class _OverHttp(_Sender):
    def run(self) -> None:
        with httpx.Client(trust_env=False, timeout=30) as self._client:
            super().run()

    def takes(self, body: bytes) -> bool:
        try:
            answer = self._client.post(
                f"{self._service.http}/v1/traces",
                content=body,
                headers={"content-type": "application/x-protobuf"},
            )
        except httpx.TransportError:
            return False
        return answer.status_code == 200


class _OverGrpc(_Sender):
    def run(self) -> None:
        # Without these a client waits ever longer for a service that is away.
        options = [
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 200),
        ]
        with grpc.insecure_channel(self._service.grpc, options) as channel:
            self._export = channel.unary_unary(EXPORT)
            super().run()

    def takes(self, body: bytes) -> bool:
        try:
            answer = self._export(body, timeout=30)
        except grpc.RpcError:
            return False
        return answer == b""
