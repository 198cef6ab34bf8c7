"""Recorded bodies as spans: protobuf or JSON, gzipped or not, over HTTP or gRPC."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.lab.telemetry.decoded import Span, spans_of

_IDS = {"traceId", "spanId", "parentSpanId"}


def captured(folder: Path) -> list[Span]:
    """All spans of a capture."""
    return spans_of(_bodies(folder))


def _bodies(folder: Path) -> Iterator[tuple[int, bytes]]:
    for path in sorted(folder.rglob("*.bin")):
        beside = json.loads(path.with_suffix(".json").read_text())
        if "race" not in beside["path"]:
            continue
        body = path.read_bytes()
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        if "json" in (beside["content_type"] or ""):
            told = _as_protobuf_has_it(json.loads(body))
            body = ParseDict(told, ExportTraceServiceRequest()).SerializeToString()
        yield int(beside["received_unix_ns"]), body


def _as_protobuf_has_it(value: Any, key: str = "") -> Any:
    """OTLP/JSON has ids in hex; protobuf's own JSON has them in base64."""
    if isinstance(value, dict):
        return {k: _as_protobuf_has_it(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_protobuf_has_it(v) for v in value]
    return base64.b64encode(bytes.fromhex(value)).decode() if key in _IDS else value
