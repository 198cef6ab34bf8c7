"""OTLP files: JSON, JSON lines as the OpenTelemetry Collector's file exporter writes them, and
protobuf (one message, or messages behind 4-byte big-endian lengths). Compressed or not.

Such files hold no receive times: a body counts as received at the latest time in it (but see
`latest_of`), and never before the body in front of it.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.replay.inflate import compression_of, inflate
from tailburn.app.replay.recording import Recording, RecordingError, latest_of
from tailburn.collector.accept import Encoding, Signal

_TIME = re.compile(rb'"(?:endTimeUnixNano|timeUnixNano)"\s*:\s*"?(\d{1,20})')
_LENGTH = struct.Struct(">I")
_TRACE_ID_BYTES = 16


_ABSENT = msgspec.Raw()


class _Document(msgspec.Struct, rename="camel"):
    """The outermost keys of an OTLP JSON message, their values left as text."""

    resource_spans: msgspec.Raw = _ABSENT
    resource_metrics: msgspec.Raw = _ABSENT
    resource_logs: msgspec.Raw = _ABSENT


def recordings_in_file(path: Path) -> Iterator[Recording]:
    """The messages of one file, in its order; logs are left out. Raises RecordingError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from None
    data = inflate(raw, compression_of(raw), str(path))
    received_ns = 0
    for piece in _json(data, path) if data.lstrip()[:1] == b"{" else _protobuf(data, path):
        received_ns = max(received_ns, piece.received_ns)
        yield replace(piece, received_ns=received_ns)


def _json(data: bytes, path: Path) -> Iterator[Recording]:
    lines = data.splitlines()
    if not _is_json(next(line for line in lines if line.strip())):
        lines = [data]  # one document over many lines
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}:{number}" if len(lines) > 1 else str(path)
        signal = _signal(line, place)
        if signal is not None:
            latest_ns = latest_of(int(t) for t in _TIME.findall(line))
            yield Recording(place, latest_ns, signal, Encoding.JSON, line)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _signal(line: bytes, place: str) -> Signal | None:
    """What a JSON message carries; None for logs. Raises RecordingError."""
    try:
        document = msgspec.json.decode(line, type=_Document)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordingError(f"{place}: not OTLP JSON: {error}") from None
    if document.resource_spans != _ABSENT:
        return Signal.TRACES
    if document.resource_metrics != _ABSENT:
        return Signal.METRICS
    if document.resource_logs != _ABSENT:
        return None
    raise RecordingError(f"{place}: not OTLP: no resourceSpans or resourceMetrics in it")


def _protobuf(data: bytes, path: Path) -> Iterator[Recording]:
    messages = _framed(data)
    for number, message in enumerate(messages or [data], 1):
        place = f"{path}:{number}" if messages else str(path)
        if (latest_ns := _latest_of_traces(message)) is not None:
            yield Recording(place, latest_ns, Signal.TRACES, Encoding.PROTOBUF, message)
        elif (latest_ns := _latest_of_metrics(message)) is not None:
            yield Recording(place, latest_ns, Signal.METRICS, Encoding.PROTOBUF, message)
        else:
            raise RecordingError(f"{place}: neither OTLP JSON nor OTLP protobuf")


def _framed(data: bytes) -> list[bytes]:
    """The messages behind length prefixes; empty unless those add up to the whole file."""
    messages, at = [], 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + length
        if length == 0 or at > len(data):
            return []
        messages.append(data[at - length : at])
    return messages if at == len(data) else []


def _latest_of_traces(message: bytes) -> int | None:
    """The latest end of a span; None where this is no message of traces.

    Metrics parse as traces too: only a span has a trace id of 16 bytes.
    """
    try:
        request = ExportTraceServiceRequest.FromString(message)
    except DecodeError:
        return None
    spans = [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
    if spans and not any(len(s.trace_id) == _TRACE_ID_BYTES for s in spans):
        return None
    return latest_of(s.end_time_unix_nano for s in spans)


def _latest_of_metrics(message: bytes) -> int | None:
    try:
        request = ExportMetricsServiceRequest.FromString(message)
    except DecodeError:
        return None
    metrics = [m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics]
    points = [
        point.time_unix_nano
        for metric in metrics
        for field, data in metric.ListFields()
        if field.name in ("gauge", "sum", "histogram", "exponential_histogram", "summary")
        for point in data.data_points
    ]
    return latest_of(points)
