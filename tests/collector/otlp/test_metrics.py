"""OTLP metrics as rows, judged by what the SDK's own exporter sends."""

import json
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import DataPointFlags, Metric
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from bench.bodies import key_values
from tailburn.collector.accept import Encoding
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.metrics import decode_points
from tailburn.engine.schema import SIGNALS
from tests.collector.otlp.as_json import as_json

NOW_NS = 1_790_000_000_000_000_000
BOTH = pytest.mark.parametrize("encoding", list(Encoding))


def recorded() -> ExportMetricsServiceRequest:
    """What the SDK exports of a counter, a gauge and a histogram."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], Resource({"service.name": "vllm"}))
    meter = provider.get_meter("scope")
    meter.create_counter("requests", unit="1").add(3, {"model": "a", "user.email": "bob@corp.com"})
    meter.create_gauge("depth").set(2.5)
    histogram = meter.create_histogram("ttft", unit="s", explicit_bucket_boundaries_advisory=[1, 2])
    for value in (0.5, 1.5, 1.75, 9.0):
        histogram.record(value, {"model": "a"})
    data = reader.get_metrics_data()
    assert data is not None
    return encode_metrics(data)


def one_metric(**data: Any) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.append(Metric(name="m", **data))
    return request


def body_of(request: ExportMetricsServiceRequest, encoding: Encoding) -> bytearray:
    raw = encoding is Encoding.PROTOBUF
    return bytearray(request.SerializeToString() if raw else as_json(request))


def rows(
    request: ExportMetricsServiceRequest, encoding: Encoding = Encoding.PROTOBUF
) -> list[dict[str, Any]]:
    body = body_of(request, encoding)
    points = decode_points(body, encoding, received_ns=NOW_NS, tenant="acme")
    assert points.table.schema == SIGNALS
    found: list[dict[str, Any]] = points.table.to_pylist()
    return found


@BOTH
def test_what_the_sdk_exports(encoding: Encoding) -> None:
    found = rows(recorded(), encoding)
    values = {
        (row["name"], row["kind"], json.loads(row["labels"]).get("le")): row["value"]
        for row in found
    }
    assert values == {
        ("requests", "sum", None): 3.0,
        ("depth", "gauge", None): 2.5,
        ("ttft", "histogram_count", None): 4.0,
        ("ttft", "histogram_sum", None): 12.75,
        ("ttft", "histogram_min", None): 0.5,
        ("ttft", "histogram_max", None): 9.0,
        ("ttft", "histogram_bucket", "1.0"): 1.0,
        ("ttft", "histogram_bucket", "2.0"): 3.0,
        ("ttft", "histogram_bucket", "+Inf"): 4.0,
    }
    assert {row["service"] for row in found} == {"vllm"}
    assert {row["unit"] for row in found} == {"1", "", "s"}
    assert {(row["tenant"], row["received_ns"]) for row in found} == {("acme", NOW_NS)}
    assert all(row["time_ns"] > 0 for row in found)


@BOTH
def test_secrets_are_not_in_the_body_nor_in_the_rows(encoding: Encoding) -> None:
    request = recorded()
    group = request.resource_metrics[0]
    group.resource.attributes.extend(key_values({"process.command_line": "serve --key zzsecret"}))
    group.scope_metrics[0].scope.attributes.extend(key_values({"authorization": "zzsecret"}))
    for metric in group.scope_metrics[0].metrics:
        metric.description = "zzsecret" * 100
    point = group.scope_metrics[0].metrics[0].sum.data_points[0]
    point.attributes.extend(key_values({"hashed_api_key": "zzsecret", "url": "/v1?k=zzsecret"}))
    point.exemplars.add(as_int=1).filtered_attributes.extend(key_values({"prompt": "zzsecret"}))
    body = body_of(request, encoding)
    points = decode_points(body, encoding, received_ns=NOW_NS, tenant="acme")
    again = decode_points(body, encoding, received_ns=NOW_NS, tenant="acme")
    assert again.table == points.table
    for text in (bytes(body).decode(errors="replace"), str(points.table.to_pylist())):
        assert "zzsecret" not in text
        assert "bob@corp.com" not in text


def test_exponential_histograms_become_cumulative_buckets() -> None:
    request = one_metric()
    histogram = request.resource_metrics[0].scope_metrics[0].metrics[0].exponential_histogram
    point = histogram.data_points.add(count=10, sum=20, scale=1, zero_count=2)
    point.positive.offset = -1
    point.positive.bucket_counts.extend([3, 4])
    point.negative.bucket_counts.extend([1])
    buckets = [row for row in rows(request) if row["kind"] == "histogram_bucket"]
    assert [(json.loads(b["labels"])["le"], b["value"]) for b in buckets] == [
        ("0.0", 3.0),
        ("1.0", 6.0),
        ("1.4142135623730951", 10.0),
        ("+Inf", 10.0),
    ]


def test_summaries_and_deltas() -> None:
    request = one_metric()
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    summary = metrics[0].summary.data_points.add(count=5, sum=10, time_unix_nano=7)
    summary.quantile_values.add(quantile=0.99, value=4)
    metrics.add(name="d").sum.aggregation_temporality = 1
    metrics[1].sum.data_points.add(as_int=3)
    found = [(r["name"], r["kind"], r["labels"], r["value"], r["time_ns"]) for r in rows(request)]
    assert found == [
        ("m", "summary_count", "{}", 5.0, 7),
        ("m", "summary_sum", "{}", 10.0, 7),
        ("m", "summary_quantile", '{"quantile": "0.99"}', 4.0, 7),
        ("d", "delta_sum", "{}", 3.0, NOW_NS),
    ]


def test_points_that_cannot_be_rows_are_rejected_alone() -> None:
    request = one_metric()
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    gauge = metrics[0].gauge
    gauge.data_points.add(as_double=1)
    gauge.data_points.add(as_double=2, time_unix_nano=(1 << 64) - 1)
    gauge.data_points.add(as_double=3).attributes.extend(
        key_values({f"k{i}": i for i in range(200)})
    )
    gauge.data_points.add(flags=DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
    histogram = metrics.add(name="h").histogram
    histogram.data_points.add(bucket_counts=[1, 2], explicit_bounds=[1, 2, 3])
    histogram.data_points.add(bucket_counts=[0] * 2000, explicit_bounds=[1.0] * 1999)
    body = body_of(request, Encoding.PROTOBUF)
    points = decode_points(body, Encoding.PROTOBUF, received_ns=NOW_NS, tenant="acme")
    assert points.table["value"].to_pylist() == [1.0]
    assert points.rejected == 4
    assert points.message.startswith("4 of 6 points rejected; first: point 1 ('m')")


@BOTH
@pytest.mark.parametrize("body", [b"\xff", b"{", b"[1]", b"\x0a\xff"])
def test_what_is_no_request_is_a_bad_body(encoding: Encoding, body: bytes) -> None:
    with pytest.raises(BadBody, match="ExportMetricsServiceRequest"):
        decode_points(bytearray(body), encoding, received_ns=NOW_NS, tenant="acme")
