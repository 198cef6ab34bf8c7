"""Tries, hedges and choices: several calls below are one request above."""

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import expect, standing
from tests.captures.scenarios.hops import call, call_out, engine, gateway, given_up
from tests.captures.scenarios.otlp import ERROR, OK, at

FAILED = {"http.status_code": 500, "error.type": "500"}


def test_tries_one_after_the_other_wait_in_retry() -> None:
    spans = [
        call(0, 1000, 405),
        gateway(10, 990),
        call_out(15, 115, "first", status=ERROR, attributes=FAILED),
        call_out(165, 180, "second"),
        engine(170, 400, 950, parent="second"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "attempts": 2,
            "hedged": False,
            "outcome": "ok",
            "ttft_retry_s": 0.15,
            "ttft_gateway_to_engine_s": 0.005,
            "ttft_prefill_s": 0.23,
        },
    )


def test_tries_of_the_client_itself_are_one_request() -> None:
    spans = [
        call(0, 1000, 405),
        call_out(1, 100, "first", "call", service="shop", status=ERROR, attributes=FAILED),
        gateway(5, 99, "refused", "first", attributes=FAILED, status=ERROR),
        call_out(200, 210, "second", "call", service="shop"),
        gateway(205, 990, "served", "second"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 2, "outcome": "ok", "e2e_client_s": 1.0, "ttft_client_s": 0.405},
    )


def test_tries_that_share_a_span_id_are_two() -> None:
    spans = [
        call(0, 1000, 405),
        gateway(10, 990),
        call_out(15, 115, "same", attributes={"http.status_code": 499}, status=ERROR),
        call_out(165, 180, "same"),
    ]
    expect(standing(rows_of([at(2, *spans)])), {"attempts": 2, "outcome": "ok"})


def test_tries_that_only_engines_saw_are_counted() -> None:
    """One span of the router for both, as routers make that count their tries in events."""
    spans = [
        call(0, 1000, 405),
        gateway(10, 990, "router"),
        gateway(20, 70, "first", "router", service="engine-1", status=ERROR, attributes=FAILED),
        gateway(120, 950, "second", "router", service="engine-2"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 2, "hedged": False, "outcome": "ok", "ttft_retry_s": 0.1},
    )


def test_the_loser_of_a_hedge_costs_but_does_not_fail_the_request() -> None:
    lost = {"error.type": "cancelled"}
    spans = [
        call(0, 1000, 405),
        gateway(10, 990),
        call_out(15, 410, "slow", status=ERROR, attributes=lost),
        call_out(65, 400, "quick"),
        engine(70, 390, 950, parent="quick"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 2, "hedged": True, "outcome": "ok", "ttft_retry_s": 0.0},
    )


def test_a_client_that_asks_anew_after_headers_waited_too_long_for_a_token() -> None:
    """Its span of the first try ended well, at the headers; no token came before its time-out."""
    spans = [
        call(0, 1000, 905),
        call_out(1, 30, "first", "call", service="shop"),
        gateway(5, 402, "left", "first"),
        call_out(600, 630, "second", "call", service="shop"),
        gateway(605, 990, "served", "second"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 2, "hedged": False, "outcome": "ok", "ttft_retry_s": 0.599},
    )


def test_two_tries_at_once_after_headers_are_a_hedge() -> None:
    spans = [
        call(0, 1000, 905),
        call_out(1, 30, "slow", "call", service="shop"),
        gateway(5, 906, "left", "slow"),
        call_out(600, 630, "quick", "call", service="shop"),
        gateway(605, 990, "served", "quick"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 2, "hedged": True, "outcome": "ok", "ttft_retry_s": None,
         "e2e_gateway_s": 0.385},
    )  # fmt: skip


def test_two_choices_are_one_request_whose_prompt_counts_once() -> None:
    spans = [
        engine(20, 220, 950, "one", "unseen", request="chatcmpl-9"),
        engine(20, 221, 940, "two", "unseen", request="chatcmpl-9"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            "attempts": 1,
            "hedged": False,
            "prompt_tokens": 12,
            "output_tokens": 64,
            "ttft_engine_s": 0.2,
            "e2e_engine_s": 0.93,
        },
    )


def test_a_request_its_client_gave_up_is_cancelled_though_the_engine_ran_on() -> None:
    spans = [
        given_up(call(0, 400, 300)),
        gateway(10, 2000, status=OK),
        call_out(15, 280),
        engine(20, 220, 1950),
    ]
    expect(
        standing(rows_of([at(3, *spans)])),
        {"outcome": "cancelled", "e2e_client_s": 0.4, "ttft_client_s": 0.3},
    )


def test_a_gateway_left_by_its_client_before_the_engine_answered_was_cancelled() -> None:
    left = {"http.status_code": 499}
    spans = [gateway(10, 300, parent="", attributes=left), call_out(15, 290, status=ERROR)]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"outcome": "cancelled", "ttft_gateway_s": None, "ttft_engine_s": None},
    )


def test_two_server_spans_of_one_hop_are_one_hop() -> None:
    """LiteLLM's own span beside FastAPI's, and the engine beside both."""
    spans = [
        call(0, 1000, 300),
        call_out(1, 298, "caller's post", "call", service="shop"),
        gateway(10, 990, "fastapi", "caller's post", service="litellm-proxy"),
        gateway(11, 980, "litellm", "caller's post", service="litellm-proxy"),
        engine(20, 220, 950, parent="caller's post"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {"attempts": 1, "hedged": False, "e2e_gateway_s": 0.98, "ttft_engine_s": 0.2},
    )
