"""OTLP metrics to rows of `signals`, through protobuf's own classes: a trickle beside spans."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    SummaryDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from tailburn.collector.accept import Encoding
from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.kernel.entries import clean_attribute
from tailburn.collector.otlp.resources import Value, plain
from tailburn.engine.schema import SIGNALS

MAX_BUCKETS: Final = 1024
MAX_ATTRIBUTES: Final = 128

_LATEST_NS: Final = (1 << 63) - 1
_CLEANED: Final = 65_536

Labels = dict[str, Value]


@dataclass(frozen=True)
class Point:
    """One value of one series. `time_ns` 0: the sender didn't say."""

    time_ns: int
    service: str
    resource: str  # attributes as JSON, keys sorted
    name: str
    kind: str  # gauge, sum, delta_sum, histogram_count, ..., see `_values`
    unit: str
    labels: str  # JSON, keys sorted
    value: float


@dataclass(frozen=True)
class DecodedPoints:
    """A body that was taken. `rejected` of its points were not: `message` is for the sender."""

    table: pa.Table  # rows of engine.schema.SIGNALS
    rejected: int
    message: str


class _BadPoint(ValueError):
    """A point that can't be a row; the text says why."""


def decode_points(
    body: bytearray, encoding: Encoding, *, received_ns: int, tenant: str
) -> DecodedPoints:
    """The points of an ExportMetricsServiceRequest as rows.

    Users' text is blanked in the body, which keeps its encoding but not its length: exemplars
    and unknown fields go. Raises BadBody.
    """
    request = _parse(body, encoding)
    request.DiscardUnknownFields()
    points: list[Point] = []
    rejected, seen, first = 0, 0, ""
    for group in request.resource_metrics:
        _blank(group.resource.attributes)
        service, resource = _source(group.resource)
        for scoped in group.scope_metrics:
            _blank_scope(scoped.scope)
            for metric in scoped.metrics:
                _blank_metric(metric)
                for point in _data_points(metric):
                    seen += 1
                    try:
                        points.extend(list(_rows(metric, point, service, resource)))
                    except _BadPoint as error:
                        first = first or f"point {seen - 1} ({metric.name[:64]!r}): {error}"
                        rejected += 1
    message = f"{rejected} of {seen} points rejected; first: {first}" if rejected else ""
    body[:] = _written(request, encoding)
    return DecodedPoints(_table(points, received_ns, tenant), rejected, message)


def _written(request: ExportMetricsServiceRequest, encoding: Encoding) -> bytes:
    if encoding is Encoding.PROTOBUF:
        return request.SerializeToString()
    return json_format.MessageToJson(request, indent=None).encode()


def _parse(body: bytes | bytearray, encoding: Encoding) -> ExportMetricsServiceRequest:
    try:
        if encoding is Encoding.PROTOBUF:
            return ExportMetricsServiceRequest.FromString(bytes(body))
        message = ExportMetricsServiceRequest()
        json_format.Parse(bytes(body).decode(), message, ignore_unknown_fields=True)
        return message
    except (DecodeError, json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"body is no ExportMetricsServiceRequest in {encoding}: {error}") from error


@lru_cache(maxsize=_CLEANED)
def _cleaned(attribute: bytes) -> bytes:
    return clean_attribute(attribute)


def _blank(attributes: Any) -> None:
    """Blank users' text in a repeated KeyValue, in place."""
    for attribute in attributes:
        before = attribute.SerializeToString()
        after = _cleaned(before)
        if after != before:
            attribute.CopyFrom(KeyValue.FromString(after))


def _blank_text(text: str) -> str:
    """A text without a name, blanked if it is long or holds a secret."""
    attribute = KeyValue()
    attribute.value.string_value = text
    cleaned = KeyValue.FromString(_cleaned(attribute.SerializeToString()))
    return cleaned.value.string_value.rstrip(" ")


def _blank_scope(scope: InstrumentationScope) -> None:
    scope.name = _blank_text(scope.name)
    scope.version = _blank_text(scope.version)
    _blank(scope.attributes)


def _blank_metric(metric: Metric) -> None:
    metric.name = _blank_text(metric.name)
    metric.description = _blank_text(metric.description)
    metric.unit = _blank_text(metric.unit)
    _blank(metric.metadata)
    for point in _data_points(metric):
        _blank(point.attributes)
        if not isinstance(point, SummaryDataPoint):
            point.ClearField("exemplars")


def _source(resource: Resource) -> tuple[str, str]:
    """Name of the service, and all attributes as JSON."""
    attributes = {kv.key: plain(kv.value) for kv in resource.attributes}
    return str(attributes.get("service.name", "")), _as_json(attributes)


def _as_json(labels: Labels) -> str:
    return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def _data_points(metric: Metric) -> Any:
    kind = metric.WhichOneof("data")
    return getattr(metric, kind).data_points if kind else ()


def _rows(metric: Metric, point: Any, service: str, resource: str) -> Iterator[Point]:
    """The rows of a data point. Raises _BadPoint before the first."""
    if point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
        return
    if point.time_unix_nano > _LATEST_NS:
        raise _BadPoint(f"time_unix_nano is {point.time_unix_nano}, after the year 2262")
    if len(point.attributes) > MAX_ATTRIBUTES:
        raise _BadPoint(f"{len(point.attributes)} attributes, accepted: {MAX_ATTRIBUTES}")
    labels = {kv.key: plain(kv.value) for kv in point.attributes}
    text = _as_json(labels)
    for kind, extra, value in _values(metric, point):
        yield Point(
            time_ns=point.time_unix_nano,
            service=service,
            resource=resource,
            name=metric.name,
            kind=kind,
            unit=metric.unit,
            labels=_as_json({**labels, **extra}) if extra else text,
            value=value,
        )


def _values(metric: Metric, point: Any) -> Iterator[tuple[str, Labels, float]]:
    """(kind, label besides the point's own, value); buckets are cumulative, with `le`."""
    if isinstance(point, NumberDataPoint):
        number = point.WhichOneof("value")
        if number is not None:
            yield _number_kind(metric), {}, float(getattr(point, number))
    elif isinstance(point, SummaryDataPoint):
        yield "summary_count", {}, float(point.count)
        yield "summary_sum", {}, point.sum
        for quantile in point.quantile_values:
            yield "summary_quantile", {"quantile": str(quantile.quantile)}, quantile.value
    elif isinstance(point, HistogramDataPoint):
        yield from _summed(metric.histogram.aggregation_temporality, point)
        yield from _cumulative(_explicit(point))
    elif isinstance(point, ExponentialHistogramDataPoint):
        yield from _summed(metric.exponential_histogram.aggregation_temporality, point)
        yield from _cumulative(_exponential(point))


def _number_kind(metric: Metric) -> str:
    if metric.WhichOneof("data") == "gauge":
        return "gauge"
    delta = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    return "delta_sum" if metric.sum.aggregation_temporality == delta else "sum"


def _summed(temporality: int, point: Any) -> Iterator[tuple[str, Labels, float]]:
    delta = temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    prefix = "delta_histogram" if delta else "histogram"
    yield f"{prefix}_count", {}, float(point.count)
    for field in ("sum", "min", "max"):
        if point.HasField(field):
            yield f"{prefix}_{field}", {}, getattr(point, field)


def _explicit(point: HistogramDataPoint) -> Iterator[tuple[float, int]]:
    """(upper bound, count) of each bucket. Raises _BadPoint."""
    bounds, counts = point.explicit_bounds, point.bucket_counts
    if len(counts) > MAX_BUCKETS:
        raise _BadPoint(f"{len(counts)} buckets, accepted: {MAX_BUCKETS}")
    if counts and len(counts) != len(bounds) + 1:
        raise _BadPoint(f"{len(counts)} buckets for {len(bounds)} bounds")
    return zip((*bounds, math.inf), counts, strict=False)


def _exponential(point: ExponentialHistogramDataPoint) -> Iterator[tuple[float, int]]:
    """(upper bound, count): all below zero and zero as one bucket, then each positive one."""
    positive = point.positive
    if len(positive.bucket_counts) > MAX_BUCKETS:
        raise _BadPoint(f"{len(positive.bucket_counts)} buckets, accepted: {MAX_BUCKETS}")
    yield point.zero_threshold, point.zero_count + sum(point.negative.bucket_counts)
    for i, count in enumerate(positive.bucket_counts, start=1):
        yield _power((positive.offset + i) * 2.0**-point.scale), count
    yield math.inf, 0


def _power(exponent: float) -> float:
    try:
        return float(2.0**exponent)
    except OverflowError:
        return math.inf


def _cumulative(buckets: Iterator[tuple[float, int]]) -> Iterator[tuple[str, Labels, float]]:
    total = 0
    for bound, count in buckets:
        total += count
        le = "+Inf" if math.isinf(bound) else repr(bound)
        yield "histogram_bucket", {"le": le}, float(total)


def _table(points: list[Point], received_ns: int, tenant: str) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "received_ns": [received_ns] * len(points),
        "time_ns": [point.time_ns or received_ns for point in points],
        "tenant": [tenant] * len(points),
    }
    for name in ("service", "resource", "name", "kind", "unit", "labels", "value"):
        columns[name] = [getattr(point, name) for point in points]
    arrays = []
    for field in SIGNALS:
        if pa.types.is_dictionary(field.type):
            arrays.append(pa.array(columns[field.name], pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(columns[field.name], field.type))
    return pa.Table.from_arrays(arrays, schema=SIGNALS)
