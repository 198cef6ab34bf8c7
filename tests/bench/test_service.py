"""The harness of the service's figures: what it sends is sound, and a run accounts for it all."""

from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.service.fresh import fresh_bodies
from bench.service.running import BASELINE, SERVICE
from bench.service.sending import measure

NOW_NS = 1_800_000_000_000_000_000


def spans_of(body: bytes | bytearray) -> list[Span]:
    message = ExportTraceServiceRequest.FromString(bytes(body))
    return [s for r in message.resource_spans for g in r.scope_spans for s in g.spans]


def request_ids(spans: list[Span]) -> set[str]:
    return {
        a.value.string_value for s in spans for a in s.attributes if a.key == "gen_ai.request.id"
    }


def test_a_body_sent_again_is_of_other_traces_and_requests_that_ended_just_now() -> None:
    (body,) = fresh_bodies(1, 64)
    first = spans_of(body.renew(1, NOW_NS))
    second = spans_of(body.renew(2, NOW_NS + 5))
    assert len(first) == len(second) == 64
    assert not {s.trace_id for s in first} & {s.trace_id for s in second}
    assert not request_ids(first) & request_ids(second)
    assert len(request_ids(first)) == len(request_ids(second)) > 1
    assert max(s.end_time_unix_nano for s in first) == NOW_NS
    assert max(s.end_time_unix_nano for s in second) == NOW_NS + 5


def test_a_body_sent_again_differs_in_nothing_else() -> None:
    (body,) = fresh_bodies(1, 64)
    first, second = (spans_of(body.renew(n, NOW_NS)) for n in (1, 2))
    for one, other in zip(first, second, strict=True):
        assert one.span_id == other.span_id and one.parent_span_id == other.parent_span_id
        assert one.trace_id[8:] == other.trace_id[8:]
        assert one.end_time_unix_nano == other.end_time_unix_nano
        assert [a.key for a in one.attributes] == [a.key for a in other.attributes]


def test_bodies_of_a_round_share_the_traces_that_were_cut_between_them() -> None:
    bodies = fresh_bodies(2, 60)
    first, second = ({s.trace_id for s in spans_of(b.renew(3, NOW_NS))} for b in bodies)
    assert len(first & second) == 1


def test_without_whole_requests_no_span_is_a_root() -> None:
    (body,) = fresh_bodies(1, 64, spans_a_request=8, whole=False)
    assert all(s.parent_span_id for s in spans_of(body.renew(1, NOW_NS)))
    assert body.spans == 64 - 64 // 8


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("module", "flags"),
    [
        pytest.param(SERVICE, (), id="the service over HTTP"),
        pytest.param(SERVICE, ("--grpc",), id="the service over gRPC"),
        pytest.param(BASELINE, (), id="the baseline"),
    ],
)
def test_a_run_finds_in_the_store_what_was_acknowledged(
    module: tuple[str, ...], flags: tuple[str, ...], tmp_path: Path
) -> None:
    run = measure(tmp_path, 2.0, flags=flags, module=module)
    assert run.outcome.acknowledged_spans > 0
    assert run.lost_spans == 0
    assert run.balance["stored"] == run.outcome.acknowledged_spans
    assert run.requests > 0
