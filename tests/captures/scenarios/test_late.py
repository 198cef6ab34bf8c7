"""What comes late, in another order, or never."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import Holding, OneOf, anchored, expect, standing
from tests.captures.scenarios.hops import call, call_out, chain, engine, gateway
from tests.captures.scenarios.otlp import Delivery, Span, at, span_id

SMG = {
    "method": "POST",
    "uri": "/v1/chat/completions",
    "request_id": "37c8929185a24c36",
    "status_code": "200",
    "latency": "51983",
}
CLOCKS = ("clock_offset_s", "clock_offset_half_width_s")
WHEN = ("version", "replaces", "received_ns", "digests", *CLOCKS)


def test_an_engine_span_a_minute_after_the_rest_makes_a_second_version() -> None:
    whole = chain()
    late = [span for span in whole if span.span == "engine"]
    early = [span for span in whole if span.span != "engine"]
    rows = rows_of([at(2, *early), at(62, *late)])
    expect(
        standing(rows),
        {
            **anchored("call"),
            "version": 2,
            "completeness": "complete",
            "ttft_engine_s": 0.2,
            "ttft_queue_s": 0.1,
        },
    )
    assert len({row["request_id"] for row in rows}) == 1


def test_a_client_that_comes_after_ninety_seconds_takes_its_request_over() -> None:
    whole = chain()
    rows = rows_of([at(2, *whole[1:]), at(91, whole[0])])
    expect(
        standing(rows),
        {**anchored("call"), "ttft_client_s": 0.3, "completeness": "complete"},
    )
    others = {row["request_id"] for row in rows} - {r.text("request_id") for r in standing(rows)}
    assert all(row["tombstone"] for row in _last(rows) if row["request_id"] in others)
    assert _taken_over(rows) == _pairs(("gateway", "call"))


def test_each_call_of_an_agent_is_taken_over_by_its_own_client() -> None:
    again = [
        replace(span, span=f"{span.span} 2", parent=span.parent and f"{span.parent} 2")
        for span in chain(begin=500)  # while the first goes on
    ]
    inner, clients = [*chain()[1:], *again[1:]], [again[0], chain()[0]]
    rows = rows_of([at(2, *inner), at(91, *clients), at(200, *chain(begin=9000))])
    assert _taken_over(rows) == _pairs(("gateway", "call"), ("gateway 2", "call 2"))


def _taken_over(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """The anchors before and after, and the version of each row that took a request over."""
    anchors = {row["request_id"]: row["anchor_span_id"] for row in rows}
    taken = [row for row in rows if row["replaces"]]
    return sorted((anchors[r["replaces"]], r["anchor_span_id"], r["version"]) for r in taken)


def _pairs(*labels: tuple[str, str]) -> list[tuple[str, str, int]]:
    return sorted((span_id(inner).hex(), span_id(outer).hex(), 2) for inner, outer in labels)


def _last(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return list({row["request_id"]: row for row in rows}.values())


CUT = (
    call(0, 1000, 300, trace="caller", attributes={"gen_ai.response.id": "chatcmpl-77"}),
    gateway(10, 990, trace="caller"),
    engine(20, 220, 950, parent="", trace="served", request="chatcmpl-77"),
)
WHOLE = {
    **anchored("call", "caller"),
    "ttft_client_s": 0.3,
    "ttft_engine_s": 0.2,
    "e2e_gateway_s": 0.98,
    "repaired": Holding("joined"),
}


def test_the_engine_of_a_cut_trace_joins_though_it_comes_a_minute_later() -> None:
    expect(standing(rows_of([at(2, *CUT[:2]), at(62, CUT[2])])), WHOLE)


def test_the_client_of_a_cut_trace_takes_over_though_it_comes_a_minute_later() -> None:
    expect(standing(rows_of([at(2, CUT[2]), at(62, *CUT[:2])])), WHOLE)


def test_a_root_that_never_comes_leaves_a_request_without_it() -> None:
    rows = standing(rows_of([at(2, *chain()[1:])]))
    expect(
        rows,
        {
            "completeness": OneOf(("rootless", "partial")),
            "e2e_client_s": None,
            "e2e_gateway_s": 0.98,
            "ttft_gateway_s": 0.28,
            "ttft_engine_s": 0.2,
        },
    )


def test_a_hole_in_the_middle_still_joins_both_sides() -> None:
    """The router's span was never exported; its call names a parent nobody saw."""
    spans = [call(0, 1000, 300), call_out(15, 280, parent="lost"), engine(20, 220, 950)]
    expect(
        standing(rows_of([at(2, *spans)])),
        {**anchored("call"), "ttft_engine_s": 0.2, "repaired": Holding("inferred")},
    )


def test_a_router_span_that_ends_a_minute_late_does_not_stretch_its_request() -> None:
    router = Span("router", "http_request", 0, 58_500, service="smg", scope="smg", attributes=SMG)
    served = gateway(20, 500, "served", "router", service="engine-1")
    rows = standing(rows_of([at(3, served), at(60, router)]))
    expect(rows, {"e2e_gateway_s": OneOf((0.5, 0.48, None)), "e2e_engine_s": 0.48})
    assert (rows[0].count("end_ns") or 0) - (rows[0].count("start_ns") or 0) <= 1_000_000_000


def test_a_stream_of_ten_minutes_is_one_request_with_all_its_hops() -> None:
    spans = [
        call(0, 600_000, 300),
        gateway(10, 599_990),
        engine(20, 220, 599_950),
    ]
    early = call_out(15, 280)
    expect(
        standing(rows_of([at(5, early), at(602, *spans)])),
        {**anchored("call"), "e2e_client_s": 600.0, "ttft_engine_s": 0.2},
    )


def test_a_root_whose_clock_is_four_minutes_ahead_makes_nothing_negative() -> None:
    ahead = call(240_000, 241_000, 240_300, host="laptop")
    below = [gateway(10, 990, host="rack"), engine(20, 220, 950, parent="gateway", host="rack")]
    expect(standing(rows_of([at(2, ahead, *below)])), {"ttft_engine_s": 0.2})


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_order_and_any_batching_end_in_the_same_rows(data: st.DataObject) -> None:
    spans = [
        *chain(),
        *chain("another", 40),
        *CUT,
        call(0, 1000, 405, trace="retry"),
        gateway(10, 990, trace="retry"),
        call_out(15, 115, "first", trace="retry", status=2, attributes={"http.status_code": 500}),
        call_out(165, 180, "second", trace="retry"),
        engine(170, 400, 950, parent="second", trace="retry", request="chatcmpl-3"),
    ]
    shuffled = data.draw(st.permutations(spans))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(spans) - 1), max_size=4)))
    times = data.draw(st.lists(st.integers(2, 120), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    bounds = [0, *cuts, len(spans)]
    batches = [shuffled[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
    arrived = [at(when, *batch) for when, batch in zip(sorted(times), batches, strict=True)]
    assert _essence(arrived) == _essence([at(2, *spans)])


def _essence(deliveries: list[Delivery]) -> list[dict[str, object]]:
    rows = standing(rows_of(deliveries))
    kept = [{k: v for k, v in row.values.items() if k not in WHEN} for row in rows]
    return sorted(kept, key=lambda row: str(row["request_id"]))
