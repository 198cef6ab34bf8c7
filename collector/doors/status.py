"""What a door answers: problems, their `google.rpc.Status`, and export responses.

The table of OTLP 1.11: one `Problem` per cause, valid for both transports.
"""

import json
import math
from dataclasses import dataclass
from typing import Final

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tailburn.collector.accept import Accepted, Encoding, Signal
from tailburn.collector.doors.access import Refusal
from tailburn.collector.doors.limits import MAX_RETRY_AFTER_S
from tailburn.collector.errors import Busy, IngestError, NoRoom, TooLarge

MAX_MESSAGE_CHARS: Final = 1024  # clients read a few KiB of an answer at most


@dataclass(frozen=True)
class Problem:
    """Why a request was not taken, as both transports tell it."""

    reason: str  # a counter's label
    code: int  # google.rpc.Code
    http_status: int
    message: str
    retry_after_s: float | None = None  # None: never retry


def problem_of(error: IngestError) -> Problem:
    """The answer to what an `Accept` or a reader of a body raised."""
    message = str(error)
    if isinstance(error, Busy):
        reason = "no_room" if isinstance(error, NoRoom) else "busy"
        wait_s = min(max(error.retry_after_s, 0.0), MAX_RETRY_AFTER_S)
        return Problem(reason, code_pb2.UNAVAILABLE, 503, message, wait_s)
    if isinstance(error, TooLarge):
        return Problem("too_large", code_pb2.RESOURCE_EXHAUSTED, 413, message)
    return Problem("bad_body", code_pb2.INVALID_ARGUMENT, 400, message)


def refused(refusal: Refusal) -> Problem:
    if refusal.known:
        return Problem("forbidden", code_pb2.PERMISSION_DENIED, 403, refusal.reason)
    return Problem("unauthenticated", code_pb2.UNAUTHENTICATED, 401, refusal.reason)


SLOW: Final = Problem(
    "slow", code_pb2.DEADLINE_EXCEEDED, 408, "the body did not arrive in the time allowed"
)
# A defect of ours may pass (a restart, another body): nothing is lost by a retry.
INTERNAL: Final = Problem(
    "internal", code_pb2.UNAVAILABLE, 503, "internal error, see the log", MAX_RETRY_AFTER_S
)


def status_of(problem: Problem) -> status_pb2.Status:
    """With RetryInfo where a retry is welcome, with BadRequest where the body is at fault."""
    message = _bounded(problem.message)
    status = status_pb2.Status(code=problem.code, message=message)
    if problem.retry_after_s is not None:
        status.details.add().Pack(retry_info(problem.retry_after_s))
    if problem.code == code_pb2.INVALID_ARGUMENT:
        violation = error_details_pb2.BadRequest.FieldViolation(field="body", description=message)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return status


def status_body(problem: Problem, encoding: Encoding) -> bytes:
    """The status as protobuf, or as JSON of the proto3 mapping."""
    status = status_of(problem)
    if encoding is Encoding.PROTOBUF:
        return status.SerializeToString()
    return json_format.MessageToJson(status, indent=None).encode()


def retry_info(retry_after_s: float) -> error_details_pb2.RetryInfo:
    delay = Duration()
    delay.FromNanoseconds(round(retry_after_s * 1e9))
    return error_details_pb2.RetryInfo(retry_delay=delay)


def retry_after_header(retry_after_s: float) -> bytes:
    """Whole seconds, as HTTP asks; at least 1, since JavaScript reads 0 as -1."""
    return b"%d" % max(1, math.ceil(retry_after_s))


def export_response(accepted: Accepted, signal: Signal, encoding: Encoding) -> bytes:
    """`Export…ServiceResponse`; `partial_success` only where something is to be said."""
    if not accepted.rejected and not accepted.message:
        return b"" if encoding is Encoding.PROTOBUF else b"{}"
    message = _bounded(accepted.message)
    if encoding is Encoding.JSON:
        return _partial_json(accepted.rejected, message, signal)
    if signal is Signal.TRACES:
        traces = trace_service_pb2.ExportTraceServiceResponse()
        traces.partial_success.rejected_spans = accepted.rejected
        traces.partial_success.error_message = message
        return traces.SerializeToString()
    metrics = metrics_service_pb2.ExportMetricsServiceResponse()
    metrics.partial_success.rejected_data_points = accepted.rejected
    metrics.partial_success.error_message = message
    return metrics.SerializeToString()


def _partial_json(rejected: int, message: str, signal: Signal) -> bytes:
    count = "rejectedSpans" if signal is Signal.TRACES else "rejectedDataPoints"
    # 64-bit integers are decimal strings in OTLP's JSON.
    partial = {count: str(rejected), "errorMessage": message}
    return json.dumps({"partialSuccess": partial}).encode()


def _bounded(message: str) -> str:
    """Cut to size, and without the lone surrogates that protobuf can't hold."""
    return message[:MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode()
