"""All times of a body moved by one constant."""

import json

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.replay.shift import shifted
from tailburn.collector.accept import Encoding, Signal

BY_NS = 1_000_000_000_007


def traces() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(name="chat")
    span.start_time_unix_nano, span.end_time_unix_nano = 11, 29
    span.attributes.add(key="startTimeUnixNano").value.string_value = "31"
    span.events.add(name="first token", time_unix_nano=17)
    span.events.add(name="no time")
    return request


def test_spans_and_events_keep_their_durations() -> None:
    body = traces().SerializeToString()
    moved = ExportTraceServiceRequest.FromString(
        shifted(body, Signal.TRACES, Encoding.PROTOBUF, BY_NS)
    )
    wanted = traces()
    span = wanted.resource_spans[0].scope_spans[0].spans[0]
    span.start_time_unix_nano, span.end_time_unix_nano = 11 + BY_NS, 29 + BY_NS
    span.events[0].time_unix_nano = 17 + BY_NS
    assert moved == wanted


def test_json_is_moved_like_protobuf() -> None:
    body = json_format.MessageToJson(traces()).encode()
    moved = shifted(body, Signal.TRACES, Encoding.JSON, BY_NS)
    in_protobuf = shifted(traces().SerializeToString(), Signal.TRACES, Encoding.PROTOBUF, BY_NS)
    assert json_format.ParseDict(
        json.loads(moved), ExportTraceServiceRequest()
    ) == ExportTraceServiceRequest.FromString(in_protobuf)


def test_points_of_metrics_move_too() -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.sum.data_points.add(start_time_unix_nano=5, time_unix_nano=13, as_int=3)
    moved = ExportMetricsServiceRequest.FromString(
        shifted(request.SerializeToString(), Signal.METRICS, Encoding.PROTOBUF, BY_NS)
    )
    point = moved.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0]
    assert (point.start_time_unix_nano, point.time_unix_nano) == (5 + BY_NS, 13 + BY_NS)
    assert point.as_int == 3
