"""Attempts -> the spans each product would emit -> OTLP bodies in order of arrival."""

from tailburn.lab.telemetry.spans.flow import trace_ids, try_trace_ids
from tailburn.lab.telemetry.spans.telemetry import Body, SpanTelemetry, bodies
from tailburn.lab.telemetry.spans.wiring import Clock, Export, Place, Wiring, WiringError

__all__ = [
    "Body",
    "Clock",
    "Export",
    "Place",
    "SpanTelemetry",
    "Wiring",
    "WiringError",
    "bodies",
    "trace_ids",
    "try_trace_ids",
]
