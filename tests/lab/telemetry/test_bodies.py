"""Bodies: readable by protobuf, byte for byte its own; in order; nothing lost on the way."""

from collections import Counter

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.spans import Clock, Place, SpanTelemetry, Wiring, WiringError, bodies
from tests.lab.telemetry.decoded import spans_of
from tests.lab.telemetry.making import MS, S, attempts, wiring

EPOCH = 1_764_600_000 * S


def test_protobuf_would_write_the_same_bytes() -> None:
    told = attempts(120, tokens=True, rag=True)
    for _, body in bodies(told, wiring(token_spans=True), epoch_unix_ns=EPOCH):
        assert ExportTraceServiceRequest.FromString(body).SerializeToString() == body


def test_bodies_come_in_order_of_arrival_after_their_spans_ended() -> None:
    sent = list(bodies(attempts(300), wiring()))
    assert [at for at, _ in sent] == sorted(at for at, _ in sent)
    waits = [s.received_ns - s.end for s in spans_of(sent)]
    assert min(waits) > 0
    assert max(waits) < 5.2 * S


def test_a_run_in_parts_sends_the_spans_of_a_run_at_once() -> None:
    told = attempts(400)
    whole = Counter((s.id, s.start, s.end) for s in spans_of(bodies(told, wiring())))
    telemetry = SpanTelemetry(wiring())
    parts: list[tuple[int, bytes]] = []
    for i in range(0, 400, 37):
        part = told.take(slice(i, i + 37))
        parts += telemetry.feed(part, int(part.client_end.max()))
    parts += telemetry.finish()
    assert Counter((s.id, s.start, s.end) for s in spans_of(parts)) == whole
    assert [at for at, _ in parts] == sorted(at for at, _ in parts)
    assert telemetry.spans == sum(whole.values())


def test_ids_are_never_used_twice() -> None:
    found = spans_of(bodies(attempts(300, tokens=True), wiring(token_spans=True)))
    assert len({s.id for s in found}) == len(found)


def test_a_process_sends_512_spans_at_most_and_sooner_when_they_wait() -> None:
    told = attempts(600, rate=2_000.0)
    sent = list(bodies(told, wiring()))
    sizes = [len(spans_of([body])) for body in sent]
    assert max(sizes) == 512


def test_spans_carry_the_clock_of_their_host() -> None:
    clocks = {"e0": Clock(offset_ns=200 * MS), "e1": Clock(drift_ppb=50_000)}
    told = attempts(200)
    right = {s.id: s for s in spans_of(bodies(told, wiring()))}
    for s in spans_of(bodies(told, wiring(clocks=clocks))):
        if s.resource["service.instance.id"] == "replica-0":
            ahead = 200 * MS
        elif s.resource["service.instance.id"] == "replica-1":
            ahead = right[s.id].start * 50_000 // 10**9
        else:
            ahead = 0
        assert s.start - right[s.id].start == pytest.approx(ahead, abs=1)
        assert s.end - s.start == right[s.id].end - right[s.id].start


def test_a_clock_may_be_set_and_spans_be_lost_from_an_instant_on() -> None:
    told = attempts(400)
    right = {s.id: s for s in spans_of(bodies(told, wiring()))}

    def faulty(telemetry: SpanTelemetry) -> None:
        telemetry.set_clock_offset("g0", -50 * MS, 10 * S)
        telemetry.set_loss(0.3, 10 * S)

    left = {s.id: s for s in spans_of(bodies(told, wiring(), watch=faulty))}
    moved = {i for i, s in left.items() if s.start != right[i].start}
    assert moved
    assert all(right[i].start >= 10 * S for i in moved)
    lost = [s for i, s in right.items() if i not in left]
    assert all(s.end >= 10 * S for s in lost)
    late = sum(s.end >= 10 * S for s in right.values())
    assert len(lost) / late == pytest.approx(0.3, abs=0.05)


def test_no_attempts_send_nothing() -> None:
    assert list(bodies(Attempts.blank(0), wiring())) == []


def test_a_stack_nobody_knows_is_named_with_the_nearest() -> None:
    place = Place("e0", "vllmm")
    with pytest.raises(WiringError, match="engine 'e0': no stack 'vllmm'; did you mean vllm"):
        Wiring(clients=(), gateways=(), routers=(), engines=(place,))


def test_a_call_that_is_tried_again_has_one_span_over_all_tries() -> None:
    told = attempts(2, failing=False)
    told.request[1], told.attempt[1], told.followed[0] = 0, 1, 1
    told.arrival_ns[1] = told.arrival_ns[0]
    found = spans_of(bodies(told, wiring("openai")))
    calls = [s for s in found if s.scope[0].endswith("openai_v2")]
    posts = [s for s in found if s.name == "POST" and s.service == "ask-app"]
    assert len(calls) == 1
    assert [p.parent for p in posts] == [calls[0].id] * 2
    assert calls[0].end == told.client_end[1]
    assert len({s.trace for s in found}) == 1
