"""Bodies of spans whose ids can be told again, and what reads them back."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.collector.accept import Encoding
from tailburn.collector.errors import BadBody
from tailburn.collector.group import Delivery
from tailburn.collector.intake import Intake
from tailburn.collector.log import Kind, LogReader
from tailburn.collector.otlp.decoder import Decoder
from tailburn.engine.schema import SIGNALS

START_NS = 1_764_590_400_000_000_000
MS = 1_000_000


def body(ids: Iterable[int], padding: int = 0) -> bytearray:
    """An ExportTraceServiceRequest of one span per id; `padding` bytes make it large."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    scope = resource.scope_spans.add()
    for n in ids:
        span = scope.spans.add()
        span.trace_id = n.to_bytes(16, "little")
        span.span_id = n.to_bytes(8, "little")
        span.name = "chat"
        span.start_time_unix_nano = START_NS + n
        span.end_time_unix_nano = START_NS + n + 5 * MS
    if padding:
        attribute = resource.resource.attributes.add()
        attribute.key = "padding"
        attribute.value.string_value = "x" * padding
    return bytearray(request.SerializeToString())


def ids_of(body: bytes | bytearray) -> list[int]:
    """The span ids of a body, by protobuf's own decoder."""
    request = ExportTraceServiceRequest.FromString(bytes(body))
    return [
        int.from_bytes(span.span_id, "little")
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def ids_in_log(folder: Path) -> list[int]:
    """The span ids of every record, in order."""
    return [n for r in LogReader(folder) if r.kind is Kind.TRACES for n in ids_of(r.body)]


def decoder() -> Decoder:
    return Decoder(())


@dataclass(frozen=True)
class Converted:
    body: bytearray
    rejected: int = 0
    message: str = ""


@dataclass(frozen=True)
class Points:
    table: pa.Table
    rejected: int = 0
    message: str = ""


def convert(body: bytearray) -> Converted:
    """Stands for JSON: the protobuf body behind a brace."""
    if not body.startswith(b"{"):
        raise BadBody("not JSON")
    return Converted(body[1:], rejected=2, message="two spans had odd ids")


def points(body: bytearray, encoding: Encoding, *, received_ns: int, tenant: str) -> Points:
    """Stands for metrics: one row whose name is the body."""
    row = {"received_ns": received_ns, "tenant": tenant, "name": body.decode(), "kind": encoding}
    return Points(pa.Table.from_pylist([row], schema=SIGNALS))


def delivered(intake: Intake) -> list[Delivery]:
    """Closes an intake and gives all that it delivered."""
    intake.close()
    found = []
    while (delivery := intake.deliveries.get_nowait()) is not None:
        found.append(delivery)
    return found
