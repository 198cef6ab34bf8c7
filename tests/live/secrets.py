"""A call with a user's text and keys in every place that a span has for them."""

import time
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

MODEL = "zzmodel-7b"
"""What a store must show, so that looking for the others proves something."""

_LONG = "zzplanted and so on " * 20
_ATTRIBUTES = {
    "gen_ai.input.messages": '[{"role": "user", "content": "zzplanted"}]',
    "gen_ai.output.messages": "zzplanted",
    "gen_ai.prompt.0.content": "zzplanted",
    "llm.prompts": "zzplanted",
    "input.value": "zzplanted",
    "app.unknown.note": _LONG,
    "app.contact": "zzplanted@example.invalid",
    "http.request.header.authorization": "Bearer zzplanted",
    "http.request.header.cookie": "session=zzplanted",
    "x-api-key": "zzplanted",
    "url.full": "https://api.example.invalid/v1/chat?q=zzplanted&key=zzplanted#zzplanted",
    "http.url": "https://api.example.invalid/v1/chat?q=zzplanted",
    "http.target": "/v1/chat?q=zzplanted",
    "url.query": "q=zzplanted",
    "app.callback": "https://hooks.example.invalid/x?token=zzplanted",
    "app.error": "refused: api_key=zzplanted",
    "user.id": "zzplanted",
}


def planted(number: int) -> ExportTraceServiceRequest:
    """One call; its trace is `number`."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    _set(resource.resource.attributes, {"service.name": "planted"})
    _set(resource.resource.attributes, {"process.command_line": "serve --key zzplanted"})
    _set(resource.resource.attributes, {"app.api_key": "zzplanted"})
    scoped = resource.scope_spans.add()
    _set(scoped.scope.attributes, {"gen_ai.prompt": "zzplanted"})
    span = scoped.spans.add(name=f"chat {MODEL}", kind=3, trace_id=number.to_bytes(16, "big"))
    span.span_id = number.to_bytes(8, "big")
    span.end_time_unix_nano = time.time_ns()
    span.start_time_unix_nano = span.end_time_unix_nano - 10**9
    _set(span.attributes, {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL})
    _set(span.attributes, _ATTRIBUTES)
    _nest(span.attributes.add(key="app.nested").value)
    event = span.events.add(name="gen_ai.content.prompt", time_unix_nano=span.end_time_unix_nano)
    _set(event.attributes, {"gen_ai.event.content": "zzplanted", "exception.stacktrace": _LONG})
    link = span.links.add(trace_id=bytes([9] * 16), span_id=bytes([9] * 8))
    _set(link.attributes, {"gen_ai.completion": "zzplanted"})
    span.status.code = 2
    span.status.message = "failed with api_key=zzplanted"
    return request


def _set(attributes: Any, values: dict[str, str]) -> None:
    for key, value in values.items():
        attributes.add(key=key).value.string_value = value


def _nest(value: AnyValue) -> None:
    """Text below a list below a map."""
    inner = value.kvlist_value.values.add(key="gen_ai.input.messages").value
    inner.array_value.values.add().string_value = "zzplanted"
    inner.array_value.values.add().bytes_value = b"zzplanted"
