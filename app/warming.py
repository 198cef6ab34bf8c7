"""Compiled code loaded (at the very first start: compiled) before a sender waits for it."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.collecting import restored
from tailburn.app.settings import Settings
from tailburn.collector.hops.rules import Rules
from tailburn.collector.otlp.kernel import entries

_NS = 1_000_000_000
_FAR_NS = 1 << 62


def warm_up(settings: Settings, rules: Rules) -> None:
    """Send one small trace all the way to rows, beside the service's own state."""
    entries.warm_up()
    pipeline, decoder = restored(settings, rules, None)
    decoder.add(_body(), received_ns=3 * _NS, tenant="warm-up")
    pipeline.add(decoder.take(), decoder.take_rejected())
    pipeline.advance(_FAR_NS)
    pipeline.take_rows()


def _body() -> bytearray:
    """A call as its client, a gateway and an engine see it."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for level, (name, kind) in enumerate((("chat", 3), ("POST", 2), ("llm_request", 2)), 1):
        span = scope.spans.add(name=name, kind=kind, trace_id=bytes([1] * 16))
        span.span_id = bytes([level] * 8)
        span.parent_span_id = bytes([level - 1] * 8) if level > 1 else b""
        span.start_time_unix_nano, span.end_time_unix_nano = _NS + level, 2 * _NS - level
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        span.attributes.add(key="gen_ai.latency.time_to_first_token").value.double_value = 0.5
        span.events.add(name="gen_ai.first_token", time_unix_nano=_NS + _NS // 2)
    return bytearray(request.SerializeToString())
