"""Spans of real hops, in the shapes that the recorded stacks send."""

from dataclasses import replace
from typing import Any

from tests.captures.scenarios.otlp import CLIENT, ERROR, INTERNAL, SERVER, Span

ROUTE = "/v1/chat/completions"


def call(
    start: float, end: float, first: float | None = None, span: str = "call", **more: Any
) -> Span:
    """A client's LLM call by the GenAI conventions, with the event of its first token."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "tiny-llama",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 32,
        **more.pop("attributes", {}),
    }
    events = {} if first is None else {"gen_ai.first_token": first}
    known: dict[str, Any] = {"scope": "shop.chat-client", "service": "shop", "kind": CLIENT}
    return Span(
        span,
        "chat tiny-llama",
        start,
        end,
        **{**known, **more},
        attributes=attributes,
        events=events,
    )


def given_up(span: Span) -> Span:
    """The same call, ended because its caller left."""
    attributes = {**span.attributes, "error.type": "cancelled"}
    return replace(span, status=ERROR, attributes=attributes)


def gateway(
    start: float, end: float, span: str = "gateway", parent: str = "call", **more: Any
) -> Span:
    """A FastAPI server's stay."""
    attributes = {
        "http.method": "POST",
        "http.route": ROUTE,
        "http.target": ROUTE,
        "http.status_code": 200,
        **more.pop("attributes", {}),
    }
    known: dict[str, Any] = {
        "scope": "opentelemetry.instrumentation.fastapi",
        "service": "gateway",
        "kind": SERVER,
    }
    return Span(
        span, f"POST {ROUTE}", start, end, parent, **{**known, **more}, attributes=attributes
    )


def body_sent(when: float, number: int = 0, parent: str = "gateway", **more: Any) -> Span:
    """One chunk of the answer leaving a FastAPI server."""
    return Span(
        f"{parent} send {number}",
        f"POST {ROUTE} http send",
        when,
        when,
        parent,
        **{"service": "gateway", **more},
        scope="opentelemetry.instrumentation.fastapi",
        kind=INTERNAL,
        attributes={"asgi.event.type": "http.response.body"},
    )


def call_out(
    start: float, end: float, span: str = "call out", parent: str = "gateway", **more: Any
) -> Span:
    """A gateway's httpx call: it ends at the response headers."""
    attributes = {
        "http.method": "POST",
        "http.url": f"http://10.0.0.7:8000{ROUTE}",
        "http.status_code": 200,
        **more.pop("attributes", {}),
    }
    known: dict[str, Any] = {
        "scope": "opentelemetry.instrumentation.httpx",
        "service": "gateway",
        "kind": CLIENT,
    }
    return Span(span, "POST", start, end, parent, **{**known, **more}, attributes=attributes)


def engine(
    start: float,
    first: float,
    end: float,
    span: str = "engine",
    parent: str = "call out",
    queue_ms: float = 0.0,
    request: str = "chatcmpl-1",
    output: int = 32,
    **more: Any,
) -> Span:
    """vLLM's one span: its attributes say how long queue, prefill and decode took."""
    prefill_ms = first - start - max(queue_ms, 0.0)
    attributes: dict[str, Any] = {
        "gen_ai.latency.time_to_first_token": (first - start) / 1e3,
        "gen_ai.latency.e2e": (end - start) / 1e3,
        "gen_ai.latency.time_in_queue": queue_ms / 1e3,
        "gen_ai.latency.time_in_model_prefill": prefill_ms / 1e3,
        "gen_ai.latency.time_in_model_decode": (end - first) / 1e3,
        "gen_ai.latency.time_in_model_inference": (end - first + prefill_ms) / 1e3,
        "gen_ai.usage.prompt_tokens": 12,
        "gen_ai.usage.completion_tokens": output,
        "gen_ai.request.id": request,
        "gen_ai.request.max_tokens": 32,
        "gen_ai.request.n": 1,
        **more.pop("attributes", {}),
    }
    known: dict[str, Any] = {"scope": "vllm.tracing.otel", "service": "vllm", "kind": SERVER}
    return Span(span, "llm_request", start, end, parent, **{**known, **more}, attributes=attributes)


def chain(trace: str = "trace", begin: float = 0.0, host: str = "") -> tuple[Span, ...]:
    """A whole request of a second, first token after 300 ms, 100 ms of it in the queue."""
    at: dict[str, Any] = {"trace": trace, "host": host}
    request = f"chatcmpl-{trace}-{begin:g}"
    return (
        call(begin, begin + 1000, begin + 300, **at),
        gateway(begin + 10, begin + 990, **at),
        call_out(begin + 15, begin + 280, **at),
        engine(
            begin + 20,
            begin + 220,
            begin + 950,
            queue_ms=100,
            request=request,
            **at,
        ),
        body_sent(begin + 290, **at),
        body_sent(begin + 960, 1, **at),
    )
