"""Realistic OTLP bodies, the same for the same seed: requests through five services.

A request is a trace of 8 to 10 spans: the client's call, the gateway's server and httpx
client spans, the router, retrieval, the tokenizer, vLLM's `llm_request` with its 13
attributes, a KV load, the stream. About 490 bytes and 11 attributes a span.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

Value = str | bool | int | float | list[str]
Attributes = dict[str, Value]

START_NS = 1_790_000_000_000_000_000
MODELS = (
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-235B-A22B",
    "mistralai/Mistral-Large-2411",
    "deepseek-ai/DeepSeek-V3",
)
POOLS = ("h200-chat", "h200-batch", "a100-long", "prefill-east", "decode-east")
CLIENT, GATEWAY, ROUTER, ENGINE, STORE = range(5)
SERVICES = (
    ("chat-app", "opentelemetry.instrumentation.openai_v2"),
    ("edge-gateway", "opentelemetry.instrumentation.fastapi"),
    ("llm-router", "vllm-router"),
    ("vllm", "vllm.tracing.otel"),
    ("kv-store", "lmcache_mp.server"),
)
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3


@dataclass(frozen=True)
class Planned:
    """A span with the service that sends it."""

    service: int
    span: Span


@dataclass(frozen=True)
class _Call:
    """What one request's spans have in common."""

    random: random.Random
    trace_id: bytes
    start_ns: int
    model: str
    replica: str
    request_id: str
    prompt_tokens: int
    output_tokens: int
    queue_s: float
    prefill_s: float
    decode_s: float
    failed: bool

    @property
    def first_token_s(self) -> float:
        return 0.012 + self.queue_s + self.prefill_s

    @property
    def end_s(self) -> float:
        return self.first_token_s + self.decode_s


def value_of(value: Value) -> AnyValue:
    """A Python value as OTLP has it."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    result = AnyValue()
    result.array_value.values.extend(value_of(v) for v in value)
    return result


def key_values(attributes: Attributes) -> list[KeyValue]:
    """A mapping as OTLP has it."""
    return [KeyValue(key=k, value=value_of(v)) for k, v in attributes.items()]


def _call(rng: random.Random, start_ns: int) -> _Call:
    return _Call(
        random=rng,
        trace_id=rng.randbytes(16),
        start_ns=start_ns,
        model=rng.choice(MODELS),
        replica=f"replica-{rng.randrange(24):02d}",
        request_id=f"chatcmpl-{rng.randbytes(12).hex()}",
        prompt_tokens=int(rng.lognormvariate(6, 1)) + 1,
        output_tokens=int(rng.lognormvariate(5, 1)) + 1,
        queue_s=rng.lognormvariate(-4, 1),
        prefill_s=rng.lognormvariate(-2, 0.6),
        decode_s=rng.lognormvariate(0.5, 0.7),
        failed=rng.random() < 0.01,
    )


def _http(call: _Call, host: str) -> Attributes:
    return {
        "http.request.method": "POST",
        "url.path": "/v1/chat/completions",
        "http.response.status_code": 503 if call.failed else 200,
        "server.address": host,
        "network.protocol.version": "1.1",
        "user_agent.original": "OpenAI/Python 3.57.0",
    }


def _engine(call: _Call) -> Attributes:
    """The 13 attributes of vLLM's `llm_request`."""
    return {
        "gen_ai.latency.time_to_first_token": call.first_token_s,
        "gen_ai.latency.e2e": call.end_s - 0.012,
        "gen_ai.latency.time_in_queue": call.queue_s,
        "gen_ai.latency.time_in_model_prefill": call.prefill_s,
        "gen_ai.latency.time_in_model_decode": call.decode_s,
        "gen_ai.latency.time_in_model_inference": call.prefill_s + call.decode_s,
        "gen_ai.usage.prompt_tokens": call.prompt_tokens,
        "gen_ai.usage.completion_tokens": call.output_tokens,
        "gen_ai.request.id": call.request_id,
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.temperature": 0.7,
        "gen_ai.request.n": 1,
    }


def _plan(call: _Call) -> list[tuple[int, str, int, int, float, float, Attributes]]:
    """(service, name, kind, index of the parent, start, end, attributes), times in seconds."""
    rng = call.random
    model = call.model
    gateway = f"10.3.{rng.randrange(8)}.{rng.randrange(250)}"
    client: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.request.temperature": rng.random(),
        "gen_ai.response.id": call.request_id,
        "gen_ai.response.model": model,
        "gen_ai.response.finish_reasons": [rng.choice(["stop", "length"])],
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "server.address": gateway,
        "tenant.id": f"tenant-{rng.randrange(300):03d}",
    }
    pool: Attributes = {
        "gen_ai.request.model": model,
        "llm.pool": rng.choice(POOLS),
        "gen_ai.request.id": call.request_id,
    }
    routed: Attributes = {
        "router.policy": "prefix-aware",
        "router.candidates": 12,
        "router.score": rng.random(),
        "router.kv_hit": rng.random(),
        "router.queue_depth": rng.randrange(40),
        "llm.replica": call.replica,
        "vllm.backend_url": f"http://{call.replica}:8000/v1",
        "vllm.is_streaming": True,
    }
    tokens: Attributes = {
        "tokenizer.tokens": call.prompt_tokens,
        "tokenizer.cached": rng.random() < 0.5,
        "tokenizer.threads": 8,
        "llm.replica": call.replica,
        "process.pid": rng.randrange(1000, 1040),
    }
    kv: Attributes = {
        "session_id": call.request_id,
        "requested_tokens": call.prompt_tokens,
        "hit_tokens": call.prompt_tokens // 2,
        "kv.tier": rng.choice(["host", "nvme"]),
        "kv.bytes": call.prompt_tokens * 131_072,
        "kv.transport": "nixl",
        "kv.seconds": rng.random() * 0.01,
        "llm.replica": call.replica,
    }
    search: Attributes = {
        "gen_ai.operation.name": "retrieval",
        "db.system.name": "qdrant",
        "db.collection.name": "documents",
        "db.response.returned_rows": 8,
        "retrieval.top_k": 8,
        "server.address": "10.4.0.12",
        "server.port": 6333,
    }
    stream: Attributes = {
        "stream.chunks": call.output_tokens,
        "stream.bytes": call.output_tokens * 180,
        "stream.flushes": call.output_tokens,
    }
    first, end = call.first_token_s, call.end_s
    post = {**_http(call, call.replica), "url.full": f"http://{call.replica}:8000/v1/chat"}
    queued = call.queue_s + 0.012
    return [
        (CLIENT, f"chat {model}", _CLIENT, -1, 0.0, end + 0.02, client),
        (GATEWAY, "POST /v1/chat/completions", _SERVER, 0, 0.004, end + 0.012,
         {**_http(call, gateway), "http.route": "/v1/chat/completions", **pool}),
        (GATEWAY, "POST", _CLIENT, 1, 0.006, first + 0.004, {**post, **pool}),
        (ROUTER, "router /v1/chat/completions", _SERVER, 2, 0.007, end + 0.006,
         {**_http(call, call.replica), **routed, **pool}),
        (ENGINE, "llm_request", _SERVER, 3, 0.01, end, _engine(call)),
        (ENGINE, "tokenize", _INTERNAL, 4, 0.01, 0.012, {**tokens, **pool}),
        (STORE, "mp.retrieve", _INTERNAL, 4, queued, queued + 0.004, {**kv, **pool}),
        (GATEWAY, "stream.flush", _INTERNAL, 1, first, end,
         {**_http(call, gateway), **stream, **pool}),
        (CLIENT, "retrieval documents", _CLIENT, 0, 0.001, 0.003, {**search, **pool}),
        (GATEWAY, "auth.check", _INTERNAL, 1, 0.0045, 0.0055,
         {"auth.kind": "key", "auth.cached": True, **_http(call, gateway), **pool}),
    ]  # fmt: skip


def request(rng: random.Random, start_ns: int, spans: int | None = None) -> list[Planned]:
    """The spans of one request; 8 to 10 unless told."""
    call = _call(rng, start_ns)
    plan = _plan(call)[: spans or rng.choice((8, 9, 10))]
    ids = [rng.randbytes(8) for _ in plan]
    result = []
    for (service, name, kind, parent, start_s, end_s, attributes), span_id in zip(
        plan, ids, strict=True
    ):
        span = Span(
            trace_id=call.trace_id,
            span_id=span_id,
            parent_span_id=ids[parent] if parent >= 0 else b"",
            name=name,
            kind=Span.SpanKind.Name(kind),
            start_time_unix_nano=start_ns + int(start_s * 1e9),
            end_time_unix_nano=start_ns + int(end_s * 1e9),
            flags=257,
            attributes=key_values(attributes),
        )
        if call.failed and kind == _SERVER:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message="upstream 503"))
        if call.failed:
            event = span.events.add(time_unix_nano=start_ns, name="exception")
            event.attributes.extend(key_values({"exception.type": "TimeoutError"}))
        result.append(Planned(service, span))
    return result


def _resource(service: str, rng: random.Random) -> Resource:
    instance = f"{service}-7f9c-{rng.randrange(8)}"
    return Resource(
        attributes=key_values(
            {
                "service.name": service,
                "service.namespace": "inference",
                "service.instance.id": instance,
                "telemetry.sdk.language": "python",
                "telemetry.sdk.version": "1.45.2",
                "k8s.pod.name": instance,
                "host.name": f"node-{rng.randrange(8):03d}",
                "deployment.environment.name": "prod",
            }
        )
    )


def body(spans: Sequence[Planned], rng: random.Random) -> ExportTraceServiceRequest:
    """One request of the exporter, with a resource per service."""
    message = ExportTraceServiceRequest()
    scopes: dict[int, ScopeSpans] = {}
    for planned in spans:
        if planned.service not in scopes:
            service, scope = SERVICES[planned.service]
            group = message.resource_spans.add(resource=_resource(service, rng))
            scopes[planned.service] = group.scope_spans.add()
            scopes[planned.service].scope.name = scope
            scopes[planned.service].scope.version = "1.4.2"
        scopes[planned.service].spans.append(planned.span)
    return message


def messages(
    count: int, spans: int = 512, seed: int = 7, spans_a_request: int | None = None
) -> Iterator[ExportTraceServiceRequest]:
    """`count` bodies of `spans` spans each, requests 1 ms apart on average."""
    rng = random.Random(seed)
    pending: list[Planned] = []
    now = START_NS
    for _ in range(count):
        while len(pending) < spans:
            now += rng.randrange(2_000_000)
            pending.extend(request(rng, now, spans_a_request))
        yield body(pending[:spans], rng)
        del pending[:spans]


def bodies(count: int, spans: int = 512, seed: int = 7, **how: Any) -> list[bytes]:
    """As `messages`, in protobuf."""
    return [message.SerializeToString() for message in messages(count, spans, seed, **how)]
