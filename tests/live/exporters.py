"""Real exporters that send live, and tell of every export how it ended."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from grpc import Compression as GrpcCompression
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from tests.live.service import PATIENCE_S, Service

JS = Path(__file__).parent / "js"

_EVERY_S = 0.01
_ATTRIBUTES = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny-llama"}


@dataclass
class Told:
    """Span ids: what was handed to the exporter, and how it says that each export ended."""

    sent: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def outcome(self, ok: bool, ids: Sequence[str]) -> None:
        (self.acknowledged if ok else self.failed).extend(ids)


class Sender(Protocol):
    """One that sends from the moment it is made."""

    told: Told

    def finish(self) -> None:
        """Send no more; returns when all is flushed and told."""


class PythonSender:
    """opentelemetry-sdk for Python, with an exporter as a program would set it up."""

    def __init__(self, name: str, exporter: SpanExporter) -> None:
        self.told = Told()
        self._provider = TracerProvider(resource=Resource({"service.name": name}))
        self._provider.add_span_processor(
            BatchSpanProcessor(
                _Telling(exporter, self.told),
                max_queue_size=1_000_000,
                schedule_delay_millis=100,
                max_export_batch_size=64,
            )
        )
        self._enough = Event()
        self._thread = Thread(target=self._send, name=name)
        self._thread.start()

    def finish(self) -> None:
        self._enough.set()
        self._thread.join()
        self._provider.force_flush(round(PATIENCE_S * 1000))
        self._provider.shutdown()

    def _send(self) -> None:
        tracer = self._provider.get_tracer("chat-app")
        while not self._enough.wait(_EVERY_S):
            with (
                tracer.start_as_current_span(
                    "chat tiny-llama", kind=SpanKind.CLIENT, attributes=_ATTRIBUTES
                ) as call,
                tracer.start_as_current_span("POST", kind=SpanKind.CLIENT) as inner,
            ):
                self.told.sent += [f"{s.get_span_context().span_id:016x}" for s in (inner, call)]


class _Telling(SpanExporter):
    """Notes how the exporter behind it says that each export ended."""

    def __init__(self, exporter: SpanExporter, told: Told) -> None:
        self._exporter = exporter
        self._told = told

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        ids = [f"{span.context.span_id:016x}" for span in spans if span.context]
        self._told.outcome(result is SpanExportResult.SUCCESS, ids)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class JsSender:
    """The SDK for JavaScript, in a process of its own."""

    def __init__(self, node: str, kind: str, url: str, name: str) -> None:
        self.told = Told()
        self._process = subprocess.Popen(
            [node, "send.js", kind, url, name],
            cwd=JS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = Thread(target=self._listen, name=name)
        self._thread.start()

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._thread.join()
        assert self._process.wait() == 0

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in map(json.loads, lines):
                if "sent" in line:
                    self.told.sent += line["sent"]
                else:
                    self.told.outcome(line["ok"], line["ids"])


def all_kinds(service: Service, node: str) -> dict[str, Sender]:
    """One of every kind, each sending under its own `service.name`."""
    traces, grpc = f"{service.http}/v1/traces", f"http://{service.grpc}"
    over_http = OverHttp(traces, compression=Compression.Gzip, timeout=PATIENCE_S)
    over_grpc = OverGrpc(grpc, insecure=True, compression=GrpcCompression.Gzip, timeout=PATIENCE_S)
    return {
        "python-http": PythonSender("python-http", over_http),
        "python-grpc": PythonSender("python-grpc", over_grpc),
        "js-proto": JsSender(node, "proto", traces, "js-proto"),
        "js-json": JsSender(node, "json", traces, "js-json"),
        "js-grpc": JsSender(node, "grpc", grpc, "js-grpc"),
    }
