"""Where the wait for the first token lies, and when nobody knows it."""

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import anchored, expect, standing
from tests.captures.scenarios.hops import body_sent, call, call_out, chain, engine, gateway
from tests.captures.scenarios.otlp import at

CLIENT_SIDE = ("ttft_client_self_s", "ttft_client_to_gateway_s")


def test_each_hop_holds_what_no_deeper_one_does() -> None:
    rows = standing(rows_of([at(2, *chain())]))
    expect(
        rows,
        {
            **anchored("call"),
            "ttft_client_s": 0.3,
            "ttft_gateway_s": 0.28,
            "ttft_engine_s": 0.2,
            "e2e_client_s": 1.0,
            "e2e_gateway_s": 0.98,
            "e2e_engine_s": 0.93,
            "queue_s": 0.1,
            CLIENT_SIDE: 0.02,
            "ttft_gateway_self_s": 0.075,
            "ttft_gateway_to_engine_s": 0.005,
            "ttft_queue_s": 0.1,
            "ttft_prefill_s": 0.1,
            "ttft_decode_s": 0.0,
            "decode_decode_s": 0.65,
            "prompt_tokens": 12,
            "output_tokens": 32,
            "attempts": 1,
            "hedged": False,
            "streamed": True,
            "outcome": "ok",
            "completeness": "complete",
            "version": 1,
        },
    )


def test_a_gateway_that_buffers_holds_the_excess_and_decode_does_not() -> None:
    spans = [
        call(0, 1000, 905),
        gateway(10, 990),
        call_out(15, 880),
        engine(20, 220, 850),
        body_sent(900),
        body_sent(960, 1),
    ]
    rows = standing(rows_of([at(2, *spans)]))
    expect(
        rows,
        {
            "ttft_client_s": 0.905,
            "ttft_engine_s": 0.2,
            "ttft_decode_s": 0.0,
            "ttft_gateway_self_s": 0.685,
            "ttft_gateway_to_engine_s": 0.005,
            "ttft_prefill_s": 0.2,
            CLIENT_SIDE: 0.015,
            "decode_decode_s": 0.0,
        },
    )


def test_an_answer_that_is_not_streamed_has_no_first_token() -> None:
    whole = {"gen_ai.request.stream": False}
    spans = [call(0, 1000, attributes=whole), gateway(10, 990), call_out(15, 980)]
    rows = standing(rows_of([at(2, *spans)]))
    expect(
        rows,
        {"ttft_client_s": None, "ttft_gateway_s": None, "e2e_client_s": 1.0, "outcome": "ok"},
    )


def test_a_stream_whose_first_token_nobody_tells_has_none_and_not_zero() -> None:
    streamed = {"gen_ai.request.stream": True}
    rows = standing(rows_of([at(2, call(0, 1000, attributes=streamed), gateway(10, 990))]))
    expect(rows, {"ttft_client_s": None, "streamed": True, "e2e_client_s": 1.0})


def test_one_token_has_no_time_between_tokens() -> None:
    one = {"gen_ai.usage.output_tokens": 1}
    spans = [call(0, 300, 299, attributes=one), engine(20, 220, 220, parent="call", output=1)]
    expect(standing(rows_of([at(2, *spans)])), {"tpot_client_s": None, "output_tokens": 1})


def test_a_client_span_that_starts_when_the_stream_ends_makes_no_clock_of_zero() -> None:
    spans = [call(985, 985), gateway(10, 990), call_out(15, 280), engine(20, 220, 950)]
    rows = standing(rows_of([at(2, *spans)]))
    expect(rows, {"ttft_engine_s": 0.2, "ttft_client_s": None})


def test_an_engine_that_says_it_queued_for_less_than_nothing_has_no_negative_hop() -> None:
    spans = [*chain()[:3], engine(20, 220, 950, queue_ms=-1_800_000_000_000.0)]
    rows = standing(rows_of([at(2, *spans)]))
    expect(rows, {"ttft_queue_s": 0.0, "queue_s": None, "ttft_engine_s": 0.2})


def test_a_child_that_outlives_its_parent_is_off_the_critical_path() -> None:
    rows = standing(rows_of([at(4, call(0, 1000, 300), gateway(10, 3000), call_out(15, 280))]))
    expect(rows, {"e2e_client_s": 1.0, "ttft_client_s": 0.3})
