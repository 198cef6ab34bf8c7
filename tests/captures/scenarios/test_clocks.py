"""Clocks of different hosts: what can be known of their offset, and how well."""

import random
from dataclasses import replace

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import KNOWN, Holding, expect, sound, standing
from tests.captures.scenarios.hops import call, call_out, engine, gateway
from tests.captures.scenarios.otlp import SERVER, Delivery, Span, at


def _traffic(ahead_ms: float, requests: int = 30) -> list[Delivery]:
    """Requests through a gateway to an engine whose host's clock is `ahead_ms` ahead."""
    return [at(2 + i, *_request(str(i), 1000.0 * i, ahead_ms)) for i in range(requests)]


def _request(trace: str, begin: float, ahead_ms: float) -> list[Span]:
    jitter = random.Random(trace)
    there, back = jitter.uniform(1, 8), jitter.uniform(1, 8)
    arrival = begin + 15 + there
    left = begin + 900 - back
    asked = [
        call(begin, begin + 910, begin + 260, trace=trace, host="rack-1"),
        gateway(begin + 10, begin + 905, trace=trace, host="rack-1"),
        replace(
            call_out(begin + 15, begin + 900, trace=trace, host="rack-1"),
            scope="vllm-router",
            name="process_request",
            service="vllm-router",
            attributes={"http.method": "POST", "vllm.is_streaming": True},
        ),
    ]
    served = engine(
        arrival + ahead_ms,
        arrival + 200 + ahead_ms,
        left + ahead_ms,
        queue_ms=100,
        trace=trace,
        host="rack-2",
        request=f"chatcmpl-{trace}",
    )
    return [*asked, served]


def test_an_engine_a_quarter_of_a_second_ahead_is_found_and_set_right() -> None:
    rows = standing(rows_of(_traffic(250)))
    assert len(rows) == 30
    expect(rows[-1:], {"ttft_queue_s": 0.1, "ttft_engine_s": 0.2, "repaired": Holding("offset")})
    offset, half = (
        rows[-1].seconds("clock_offset_s"),
        rows[-1].seconds("clock_offset_half_width_s"),
    )
    assert offset is not None and half is not None
    assert abs(abs(offset) - 0.25) <= half <= 0.01
    for row in rows:
        sound(row)
        edges = sum(row.seconds(f"ttft_{e}_to_engine_s") or 0.0 for e in ("gateway", "router"))
        assert edges <= 0.02


def test_a_third_of_a_tenth_of_a_millisecond_early_is_no_reason_to_touch_anything() -> None:
    for row in standing(rows_of(_traffic(-0.03))):
        sound(row)
        assert "offset" not in row.text("repaired").split(",")


def test_a_clock_within_the_width_stays_within_the_width() -> None:
    rows = standing(rows_of(_traffic(0.9)))
    for row in rows:
        sound(row)
        offset, half = row.seconds("clock_offset_s"), row.seconds("clock_offset_half_width_s")
        if offset is not None:
            assert half is not None and abs(abs(offset) - 0.0009) <= half


def test_spans_of_one_host_need_no_correction() -> None:
    spans = [call(0, 1000, 300, host="a"), gateway(10, 2000, host="a")]
    expect(standing(rows_of([at(3, *spans)])), {"clock_offset_s": 0.0, "e2e_client_s": 1.0})


def test_a_lost_call_is_bridged_by_the_clock_that_other_requests_tell_of() -> None:
    """By its own host's clock the engine took the request before the client asked."""
    broken = [span for span in _request("lost", 40_000, -400) if span.span != "call out"]
    rows = standing(rows_of([*_traffic(-400), at(42, *broken)]))
    assert len(rows) == 31
    expect(
        rows[-1:],
        {
            "repaired": Holding("inferred"),
            "ttft_engine_s": 0.2,
            "e2e_client_s": 0.91,
            "completeness": "partial",
        },
    )


def _cut(number: int, ahead_ms: float) -> list[Span]:
    """A gateway before a gateway with a trace of its own, which only an id joins."""
    begin, trace = 1000.0 * number, f"caller {number}"
    return [
        call(begin, begin + 900, begin + 260, trace=trace, host="laptop",
             attributes={"gen_ai.response.id": f"chatcmpl-0aa7{number}"}),
        call_out(begin + 1, begin + 260, "asks", "call", trace=trace, host="laptop",
                 service="shop"),
        gateway(begin + 20, begin + 880, parent="asks", trace=trace, host="rack-1"),
        Span("frontend", "http-request", begin + 30 + ahead_ms, begin + 870 + ahead_ms,
             trace=f"served {number}", kind=SERVER, service="frontend", host="rack-2",
             attributes={"request_id": f"0aa7{number}", "uri": "/v1/chat/completions",
                         "ttft_ms": 200.0}),
    ]  # fmt: skip


def test_of_two_gateways_the_one_that_the_client_called_is_the_gateway() -> None:
    """Though the clock of the other, whose trace was cut, is behind."""
    rows = standing(rows_of([at(2 + n, *_cut(n, -300)) for n in range(30)]))
    assert len(rows) == 30
    for row in rows:
        expect([row], {"e2e_gateway_s": 0.86, "ttft_gateway_s": None})
    expect(
        rows[-1:],
        {
            "clock_offset_half_width_s": KNOWN,
            "repaired": Holding("offset"),
            "ttft_gateway_self_s": 0.04,
            "ttft_unattributed_s": 0.2,  # the frontend's, behind which nobody told
        },
    )
