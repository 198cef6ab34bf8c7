"""Traces that nobody well-behaved sends: of a hundred thousand spans, and ids that collide."""

import time
from collections.abc import Iterator

import psutil
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.app.service import Running, chat, send, serving
from tests.app.test_serve import until

pytestmark = pytest.mark.timeout(600)
BODY_SPANS = 500
AGENT_SPANS = 100_000
KEPT_SPANS = 8_000
SECOND_NS = 1_000_000_000
EVERY = "/api/requests?limit=10000"


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = tmp_path_factory.mktemp("traces") / "store"
    with serving(
        store,
        "--idle-close-s",
        "1",
        "--rootless-close-s",
        "1",
        "--open-spans-per-trace",
        KEPT_SPANS,
    ) as running:
        yield running


def of_trace(trace_id: str) -> str:
    """Where its requests are asked for."""
    return f"/api/requests?where=trace_id={trace_id}"


def joined(requests: list[ExportTraceServiceRequest]) -> ExportTraceServiceRequest:
    """One body of many."""
    body = ExportTraceServiceRequest()
    for request in requests:
        body.resource_spans.extend(request.resource_spans)
    return body


def steps(first: int, count: int, start_ns: int) -> ExportTraceServiceRequest:
    """So many steps of one agent's run, each a call of a model, all in one trace."""
    body = chat(1, start_ns)
    spans = body.resource_spans[0].scope_spans[0].spans
    for number in range(first, first + count):
        step = spans.add()
        step.CopyFrom(spans[0])
        step.trace_id = b"\xa9" * 16
        step.span_id = (1 << 40 | number).to_bytes(8, "big")
    del spans[0]
    return body


def test_a_trace_of_a_hundred_thousand_spans_is_cut_and_costs_no_other(service: Running) -> None:
    now_ns = time.time_ns() - 5 * SECOND_NS
    before_bytes = psutil.Process(service.process.pid).memory_info().rss
    address = service.addresses["OTLP/HTTP"]
    for first in range(0, AGENT_SPANS, BODY_SPANS):
        assert send(address, steps(first, BODY_SPANS, now_ns)).is_success
        if first % 10_000 == 0:
            assert send(address, chat(1 + first, now_ns)).is_success
    until(lambda: service.totals().get("open") == 0)
    totals = service.totals()
    others = {f"{1 + first:032x}" for first in range(0, AGENT_SPANS, 10_000)}
    assert totals["received"] == AGENT_SPANS + len(others)
    assert totals["stored"] + totals["dropped"] == totals["received"]
    assert totals["dropped"] > AGENT_SPANS // 2  # it may close, and begin anew, as it comes
    # What is closed is published soon after.
    until(lambda: all(service.rows(of_trace(trace_id)) for trace_id in others))
    for trace_id in others:
        (row,) = service.rows(of_trace(trace_id))
        assert row["ttft_client_s"] == 0.25
    assert psutil.Process(service.process.pid).memory_info().rss < before_bytes + 600_000_000


@pytest.mark.parametrize("shift", [0, 64], ids=["low half alike", "high half alike"])
def test_ids_that_share_a_half_are_traces_of_their_own(service: Running, shift: int) -> None:
    now_ns = time.time_ns() - 5 * SECOND_NS
    other = 64 - shift
    ids = [(number << other) | (0x5EED << shift) for number in range(1, 4001)]
    address = service.addresses["OTLP/HTTP"]
    calls = []
    for number, trace in enumerate(ids):
        call = chat(1, now_ns)
        span = call.resource_spans[0].scope_spans[0].spans[0]
        span.trace_id, span.span_id = trace.to_bytes(16, "big"), (number + 1).to_bytes(8, "big")
        calls.append(call)
    for first in range(0, len(calls), BODY_SPANS):
        assert send(address, joined(calls[first : first + BODY_SPANS])).is_success
    until(lambda: len(service.rows(EVERY)) == len(ids))
    found = {row["trace_id"] for row in service.rows(EVERY)}
    assert found == {f"{trace:032x}" for trace in ids}
