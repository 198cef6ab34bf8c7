"""Answers, judged by protobuf's own decoder and its JSON mapping."""

import pytest
from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.doors.access import Refusal
from tailburn.collector.doors.status import (
    Problem,
    export_response,
    problem_of,
    refused,
    retry_after_header,
    status_body,
)
from tailburn.collector.errors import BadBody, Busy, IngestError, NoRoom, TooLarge


def decoded(body: bytes, encoding: Encoding) -> status_pb2.Status:
    if encoding is Encoding.PROTOBUF:
        return status_pb2.Status.FromString(body)
    return json_format.Parse(body, status_pb2.Status())


CAUSES = [
    (BadBody("cut"), "bad_body", code_pb2.INVALID_ARGUMENT, 400, None),
    (TooLarge("big"), "too_large", code_pb2.RESOURCE_EXHAUSTED, 413, None),
    (Busy("full", 0.25), "busy", code_pb2.UNAVAILABLE, 503, 0.25),
    (NoRoom("disk", 1.5), "no_room", code_pb2.UNAVAILABLE, 503, 1.5),
    (Busy("full", 3600.0), "busy", code_pb2.UNAVAILABLE, 503, 2.0),
]


@pytest.mark.parametrize(
    ("error", "reason", "code", "http_status", "retry_after_s"),
    CAUSES,
    ids=["bad body", "too large", "busy", "no room", "a wait no exporter would wait"],
)
def test_each_cause_has_the_answer_that_the_protocol_wants(
    error: IngestError, reason: str, code: int, http_status: int, retry_after_s: float | None
) -> None:
    assert problem_of(error) == Problem(reason, code, http_status, str(error), retry_after_s)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_retry_is_told_in_the_status_only_where_it_is_welcome(encoding: Encoding) -> None:
    busy = decoded(status_body(problem_of(Busy("full", 0.25)), encoding), encoding)
    large = decoded(status_body(problem_of(TooLarge("big")), encoding), encoding)

    retry = error_details_pb2.RetryInfo()
    assert busy.details[0].Unpack(retry)
    assert retry.retry_delay.ToNanoseconds() == 250_000_000
    assert not large.details


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_bad_body_is_told_as_a_bad_request(encoding: Encoding) -> None:
    status = decoded(status_body(problem_of(BadBody("no such tag")), encoding), encoding)

    bad = error_details_pb2.BadRequest()
    assert status.code == code_pb2.INVALID_ARGUMENT
    assert status.details[0].Unpack(bad)
    assert bad.field_violations[0].description == "no such tag"


@given(st.text(max_size=3000), st.sampled_from(list(Encoding)))
def test_any_message_arrives_cut_to_size(message: str, encoding: Encoding) -> None:
    body = status_body(problem_of(TooLarge(message)), encoding)

    assert decoded(body, encoding).message == message[:1024]


def test_a_message_with_half_a_surrogate_pair_still_arrives() -> None:
    body = status_body(problem_of(BadBody("a\ud800b")), Encoding.JSON)

    assert decoded(body, Encoding.JSON).message == "a?b"


def test_refusals_tell_a_missing_token_from_a_missing_right() -> None:
    assert refused(Refusal(False, "who?")).http_status == 401
    assert refused(Refusal(False, "who?")).code == code_pb2.UNAUTHENTICATED
    assert refused(Refusal(True, "no")).http_status == 403
    assert refused(Refusal(True, "no")).code == code_pb2.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("retry_after_s", "header"), [(0.0, b"1"), (0.3, b"1"), (1.0, b"1"), (1.01, b"2")]
)
def test_retry_after_is_whole_seconds_and_never_zero(retry_after_s: float, header: bytes) -> None:
    assert retry_after_header(retry_after_s) == header


@pytest.mark.parametrize("signal", list(Signal))
def test_success_says_nothing_more(signal: Signal) -> None:
    assert export_response(Accepted(), signal, Encoding.PROTOBUF) == b""
    assert export_response(Accepted(), signal, Encoding.JSON) == b"{}"


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize(
    "accepted", [Accepted(3, "three had no id"), Accepted(0, "old times"), Accepted(2**40, "")]
)
def test_partial_success_counts_spans_or_points(accepted: Accepted, encoding: Encoding) -> None:
    def parsed(
        signal: Signal, response: ExportTraceServiceResponse | ExportMetricsServiceResponse
    ) -> ExportTraceServiceResponse | ExportMetricsServiceResponse:
        body = export_response(accepted, signal, encoding)
        if encoding is Encoding.JSON:
            return json_format.Parse(body, response)
        response.ParseFromString(body)
        return response

    spans = parsed(Signal.TRACES, ExportTraceServiceResponse())
    points = parsed(Signal.METRICS, ExportMetricsServiceResponse())

    assert spans.partial_success.rejected_spans == accepted.rejected
    assert points.partial_success.rejected_data_points == accepted.rejected
    for response in (spans, points):
        assert response.HasField("partial_success")
        assert response.partial_success.error_message == accepted.message


def test_a_long_reason_is_cut_so_that_no_client_chokes_on_it() -> None:
    body = export_response(Accepted(1, "x" * 10**6), Signal.TRACES, Encoding.PROTOBUF)

    assert len(body) < 1100
