"""Recorded bodies as protobuf, whatever they were sent as."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_IDS = ("traceId", "spanId", "parentSpanId")


def bodies(folder: Path) -> Iterator[bytearray]:
    """Every body right in the folder, in order, as an ExportTraceServiceRequest in protobuf."""
    for file in sorted(folder.glob("*.bin")):
        header = json.loads(file.with_suffix(".json").read_text())
        data = file.read_bytes()
        if header.get("content_encoding") == "gzip":
            data = gzip.decompress(data)
        is_json = "json" in (header["content_type"] or "")
        yield protobuf_of(json.loads(data)) if is_json else bytearray(data)


def protobuf_of(request: Any) -> bytearray:
    """An ExportTraceServiceRequest in OTLP/JSON as protobuf."""
    message = ParseDict(_with_base64_ids(request), ExportTraceServiceRequest())
    return bytearray(message.SerializeToString())


def _with_base64_ids(node: Any) -> Any:
    """OTLP/JSON writes ids in hex, protobuf's own JSON wants base64."""
    if isinstance(node, dict):
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in _IDS
            else _with_base64_ids(value)
            for key, value in node.items()
        }
    return [_with_base64_ids(value) for value in node] if isinstance(node, list) else node
