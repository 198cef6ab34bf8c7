"""What no span tells is nobody's: a share that can't be known is never a hop's."""

from dataclasses import replace
from typing import Any

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import Holding, expect, standing
from tests.captures.scenarios.hops import body_sent, call, call_out, engine, gateway
from tests.captures.scenarios.otlp import SERVER, T0_NS, Span, at


def test_a_call_that_nothing_answered_may_have_waited_anywhere() -> None:
    spans = [call(0, 1000, 300), gateway(10, 990), call_out(15, 280), body_sent(290)]
    expect(
        standing(rows_of([at(2, *spans, body_sent(960, 1))])),
        {
            "completeness": "partial",
            "ttft_gateway_to_engine_s": None,
            "ttft_gateway_self_s": None,  # what it waited for after the headers may be in it
            "ttft_client_self_s": 0.02,
            "ttft_unattributed_s": 0.28,
        },
    )


def test_a_lost_gateway_is_no_network() -> None:
    """Its own call is there: what lies before that is not the client's edge to the engine."""
    spans = [
        call(0, 1000, 300),
        call_out(5, 285, "asks", "call", service="shop"),
        call_out(150, 280, "call out", "never came"),
        engine(155, 270, 950),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "ttft_client_to_gateway_s": None,
            "ttft_client_to_engine_s": None,
            "ttft_gateway_to_engine_s": 0.005,
            "ttft_prefill_s": 0.115,
        },
    )


def test_a_lost_call_of_a_gateway_is_not_the_gateways_work() -> None:
    spans = [call(0, 1000, 300), gateway(10, 990), engine(200, 280, 950, parent="never came")]
    expect(
        standing(rows_of([at(2, *spans, body_sent(290), body_sent(960, 1))])),
        {"ttft_gateway_self_s": None, "ttft_prefill_s": 0.08, "ttft_client_self_s": 0.02},
    )


LOST_GATEWAY = (
    call(0, 1000, 300),
    call_out(5, 285, "asks", "call", service="shop"),
    call_out(150, 280, "call out", "never came"),
    gateway(160, 970, "router", "call out", service="vllm-router"),
    engine(165, 280, 950, parent="router"),
)


def test_a_router_is_not_the_gateway_where_the_gateways_own_span_is_lost() -> None:
    expect(
        standing(rows_of([at(2, *LOST_GATEWAY)])),
        {
            "e2e_gateway_s": None,
            "ttft_gateway_s": None,
            "missing": Holding("gateway"),
            "completeness": "partial",
            "ttft_engine_s": 0.115,
        },
    )


def test_nor_where_the_gateway_handed_its_callers_context_on() -> None:
    """Then the router is the child of the client's call, and looks like the first to take it."""
    spans = [*LOST_GATEWAY[:3], replace(LOST_GATEWAY[3], parent="asks"), LOST_GATEWAY[4]]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"e2e_gateway_s": None, "missing": Holding("gateway"), "e2e_client_s": 1.0},
    )


def test_a_router_without_a_gateway_is_where_the_request_came_in() -> None:
    spans = [*LOST_GATEWAY[:2], replace(LOST_GATEWAY[3], parent="asks"), LOST_GATEWAY[4]]
    expect(standing(rows_of([at(2, *spans)])), {"e2e_gateway_s": 0.81, "completeness": "complete"})


def test_before_a_router_that_may_not_be_the_first_nobody_is_known_to_hold_the_time() -> None:
    """The gateway's own span and its call are lost; its guardrail betrays that it was there."""
    router = replace(LOST_GATEWAY[3], parent="asks")
    checked = Span(
        "check", "check", 20, 30, "never came", service="gateway",
        scope="openinference.instrumentation.guardrails",
        attributes={"openinference.span.kind": "GUARDRAIL"},
    )  # fmt: skip
    spans = [*LOST_GATEWAY[:2], checked, router, LOST_GATEWAY[4]]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "missing": Holding("gateway"),
            "ttft_client_to_gateway_s": None,
            "ttft_client_to_router_s": None,
            "ttft_prefill_s": 0.115,
        },
    )


def test_a_gateways_first_message_that_comes_after_the_clients_is_not_its_first() -> None:
    told = [call(0, 1000, 300), gateway(10, 990), call_out(15, 280), engine(20, 220, 950)]
    told += [body_sent(310), body_sent(320, 1), body_sent(960, 2)]
    rows = standing(rows_of([at(2, *(replace(span, host="one") for span in told))]))
    expect(rows, {"ttft_gateway_s": None, "tpot_gateway_s": None, "e2e_gateway_s": 0.98})


def test_an_answer_sent_in_one_piece_was_no_stream() -> None:
    spans = [gateway(10, 990, parent=""), call_out(15, 280), engine(20, 220, 950)]
    expect(standing(rows_of([at(2, *spans, body_sent(985))])), {"ttft_gateway_s": None})


def test_of_hops_that_tell_no_first_token_the_outermost_held_it() -> None:
    router: Span = gateway(20, 980, "router", "call out", service="vllm-router")
    spans = [
        call(0, 1000, 900),
        gateway(10, 990),
        call_out(15, 985),
        router,
        call_out(22, 980, "onward", "router", service="vllm-router"),
        engine(25, 225, 975, parent="onward"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"ttft_router_s": 0.002, "ttft_prefill_s": 0.2, "ttft_gateway_self_s": 0.68},
    )


def test_the_prefilling_engine_makes_no_token_of_the_users() -> None:
    one_token = {"gen_ai.request.max_tokens": 1}
    prefill = engine(20, 120, 121, "prefill", queue_ms=30, output=1, attributes=one_token)
    decode = engine(140, 200, 950, "decode", queue_ms=50)
    spans = [call(0, 1000, 210), gateway(10, 990), call_out(15, 985), prefill, decode]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "ttft_engine_s": 0.18,
            "queue_s": 0.03,
            "ttft_queue_s": 0.03,
            "ttft_prefill_s": 0.07,
            "ttft_engine_self_s": 0.06,
            "output_tokens": 32,
        },
    )


def test_what_triton_queued_ends_where_its_compute_span_begins() -> None:
    triton: dict[str, Any] = {"scope": "triton-server", "service": "triton", "kind": SERVER}
    model = {"triton.model_name": "tiny-llama", "triton.request_id": "r1"}
    spans = [
        call(0, 1000, 310),
        gateway(10, 990),
        call_out(15, 985),
        Span("infer", "InferRequest", 20, 980, "call out", **triton,
             events={"INFER_RESPONSE_COMPLETE": 300}),
        Span("model", "tiny-llama", 25, 979, "infer", **triton, attributes=model,
             events={"QUEUE_START": 25}),
        Span("compute", "compute", 125, 970, "model", **triton),
    ]  # fmt: skip
    expect(
        standing(rows_of([at(2, *spans)])),
        {"queue_s": 0.1, "ttft_queue_s": 0.1, "ttft_engine_s": 0.28, "ttft_prefill_s": None},
    )


def test_a_request_that_no_server_told_of_lasted_as_long_as_its_spans() -> None:
    sglang: dict[str, Any] = {"scope": "sglang server", "service": "sglang"}
    spans = [
        call_out(15, 280),
        Span("prefill", "prefill_forward", 100, 200, "call out", **sglang),
        Span("decode", "decode_forward", 210, 950, "call out", **sglang),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "start_ns": T0_NS + 15_000_000,
            "end_ns": T0_NS + 950_000_000,
            "completeness": "rootless",
            "e2e_gateway_s": None,
            "e2e_engine_s": None,
        },
    )
