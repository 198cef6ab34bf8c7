"""Shapes that real stacks send under other settings than those recorded here."""

from typing import Any

import pytest

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import Holding, OneOf, anchored, expect, standing
from tests.captures.scenarios.hops import ROUTE, call, call_out, engine, gateway
from tests.captures.scenarios.otlp import CLIENT, ERROR, INTERNAL, OK, SERVER, Span, at

FAILED = {"http.status_code": 500, "error.type": "500"}


def _litellm(name: str, start: float, end: float, **more: Any) -> Span:
    known = {"scope": "litellm", "service": "litellm-proxy", "status": OK, "kind": INTERNAL}
    return Span(more.pop("span", name), name, start, end, **{**known, **more})


def _behind_litellm(trace: str, begin: float, answer: str) -> list[Span]:
    """LiteLLM as it comes: the caller's context ends at the proxy, the engine starts anew."""
    at_post: dict[str, Any] = {"trace": trace, "parent": "post"}
    below: dict[str, Any] = {"trace": trace, "parent": "received"}
    named = {"gen_ai.response.id": answer, "litellm.call_id": f"call-{answer}"}
    return [
        call(begin, begin + 1000, trace=trace, attributes={"gen_ai.response.id": answer}),
        call_out(begin + 1, begin + 300, "post", "call", service="shop", trace=trace),
        gateway(begin + 10, begin + 990, "fastapi", service="litellm-proxy", **at_post),
        _litellm(
            "Received Proxy Server Request", begin + 11, begin + 980, span="received",
            kind=SERVER, **at_post, attributes={"http.route": ROUTE},
        ),
        _litellm("litellm_request", begin + 12, begin + 970, attributes=named, **below),
        _litellm("self", begin + 14, begin + 20, **below),
        engine(
            begin + 20, begin + 220, begin + 950, parent="", trace=f"engine of {trace}",
            request=answer, span=f"engine of {trace}",
        ),
    ]  # fmt: skip


def test_litellm_that_forwards_no_context_is_joined_by_the_answers_id() -> None:
    rows = standing(rows_of([at(2, *_behind_litellm("one", 0, "chatcmpl-a"))]))
    expect(
        rows,
        {
            **anchored("call", "one"),
            "attempts": 1,
            "ttft_engine_s": 0.2,
            "e2e_gateway_s": 0.98,
            "ttft_client_s": 0.3,
            "repaired": Holding("joined"),
        },
    )


@pytest.mark.parametrize("answer", ["chatcmpl-9{:02}f84d249afd62", "chatcmpl-nightly-job-{}"])
def test_under_load_each_engine_finds_its_own_request(answer: str) -> None:
    """vLLM's own ids, and ids a caller chose by `x-request-id`, that end in a number."""
    spans = [s for i in range(12) for s in _behind_litellm(f"{i}", 7.0 * i, answer.format(i))]
    rows = standing(rows_of([at(3, *spans)]))
    expect(rows, *({**anchored("call", f"{i}"), "ttft_engine_s": 0.2} for i in range(12)))


def test_litellm_tries_are_counted_by_what_it_sent_not_by_what_it_reports() -> None:
    """One failed `litellm_request` stands for two tries; each try is a `self` span."""
    spans = [span for span in _behind_litellm("one", 0, "chatcmpl-a") if span.span != "self"]
    below: dict[str, Any] = {"trace": "one", "parent": "received"}
    failed = {"gen_ai.response.id": "call-x", "litellm.call_id": "call-chatcmpl-a"}
    spans += [
        _litellm(
            "litellm_request", 12, 16, span="failed", status=ERROR, attributes=failed, **below
        ),
        *(_litellm("self", 13 + i, 13.5 + i, span=f"self {i}", **below) for i in range(3)),
    ]
    expect(standing(rows_of([at(2, *spans)])), {"attempts": 3, "outcome": "ok"})


def _dynamo(name: str, start: float, end: float, **more: Any) -> Span:
    known = {"scope": "dynamo-frontend", "service": "dynamo-frontend", "kind": INTERNAL}
    return Span(more.pop("span", name), name, start, end, **{**known, **more})


def _without_http_request(trace: str) -> list[Span]:
    """Dynamo under a prefill that found no decode worker: the root is never exported."""
    request = {"request_id": "85e75f83-3789-42d9-8db7-4ea49848c81e"}
    worker = {**request, "component": "prefill", "endpoint": "generate", "namespace": "dynamo"}
    route = {**request, "phase": "Prefill", "request.attempt": "0"}
    return [
        _dynamo("kv_router.select_worker", 12, 14, parent="never came", trace=trace),
        _dynamo(
            "kv_router.route_request", 15, 200, span="route", parent="never came", trace=trace,
            kind=CLIENT, attributes=route,
        ),
        _dynamo(
            "handle_payload", 16, 199, parent="route", trace=trace, kind=SERVER,
            scope="dynamo-prefill", service="dynamo-prefill", attributes=worker,
        ),
    ]  # fmt: skip


def test_dynamo_that_never_sends_its_root_leaves_one_failed_request() -> None:
    failed = call(0, 210, status=ERROR, attributes={"error.type": "500"})
    rows = standing(rows_of([at(2, failed, *_without_http_request("trace"))]))
    expect(rows, {**anchored("call"), "outcome": "error", "e2e_client_s": 0.21})


def test_dynamo_without_root_and_client_is_one_request_all_the_same() -> None:
    rows = standing(rows_of([at(2, *_without_http_request("trace"))]))
    expect(rows, {"completeness": OneOf(("rootless", "partial"))})


@pytest.mark.parametrize("policy", ["router.route_request", "kv_router.route_request"])
def test_every_policy_of_dynamo_is_the_way_to_a_worker(policy: str) -> None:
    seen = {"method": "POST", "uri": ROUTE, "request_id": "85e75f83", "ttft_ms": "280.0"}
    worker = {"request_id": "85e75f83", "component": "backend", "endpoint": "generate"}
    spans = [
        call(0, 1000, 300),
        _dynamo("http-request", 10, 990, span="frontend", parent="call", attributes=seen),
        _dynamo(
            policy, 15, 980, span="route", parent="frontend", kind=CLIENT,
            attributes={"request_id": "85e75f83", "phase": "Aggregated"},
        ),
        _dynamo(
            "handle_payload", 20, 970, parent="route", kind=SERVER, scope="dynamo-worker-1",
            service="dynamo-worker-1", attributes=worker,
        ),
    ]  # fmt: skip
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "attempts": 1,
            "e2e_engine_s": 0.95,
            "ttft_gateway_s": 0.28,
            ("ttft_gateway_to_engine_s", "ttft_router_to_engine_s"): 0.005,
        },
    )


def test_openinference_tells_the_first_token_by_its_event() -> None:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "tiny-llama",
        "llm.token_count.prompt": 12,
        "llm.token_count.completion": 32,
    }
    spans = [
        Span(
            "call", "ChatCompletion", 0, 1000, scope="openinference.instrumentation.openai",
            service="shop", attributes=attributes, events={"First Token Stream Event": 300},
        ),
        gateway(10, 990),
    ]  # fmt: skip
    expect(
        standing(rows_of([at(2, *spans)])),
        {"ttft_client_s": 0.3, "prompt_tokens": 12, "output_tokens": 32, "e2e_gateway_s": 0.98},
    )


def test_a_call_whose_router_keeps_its_span_open_with_the_connection_ends_with_its_server() -> None:
    """vllm-router's CLIENT span ends when the pooled connection does, up to 31 s late."""
    chat = {"http.request.method": "POST", "url.path": ROUTE, "http.route": ROUTE}
    router: dict[str, Any] = {"scope": "vllm-router", "service": "vllm-router", "attributes": chat}
    spans = [
        call(0, 1000, 300),
        Span("router", f"POST {ROUTE}", 10, 990, "call", kind=SERVER, **router),
        Span("try", f"POST {ROUTE}", 15, 31_000, "router", kind=CLIENT, **router),
        gateway(20, 950, "served", "try", service="engine-1"),
    ]
    expect(
        standing(rows_of([at(2, *spans[:2], spans[3]), at(33, spans[2])])),
        {**anchored("call"), "e2e_client_s": 1.0, "e2e_gateway_s": 0.98, "e2e_engine_s": 0.93},
    )


def test_a_wait_in_the_engines_queue_is_the_queues() -> None:
    spans = [
        call(0, 9000, 8460),
        gateway(10, 8990),
        call_out(12, 40),
        engine(20, 8440, 8950, queue_ms=8400),
    ]
    expect(
        standing(rows_of([at(10, *spans)])),
        {"ttft_queue_s": 8.4, "ttft_prefill_s": 0.02, "queue_s": 8.4, "ttft_engine_s": 8.42},
    )
