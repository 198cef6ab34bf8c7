"""OTLP/JSON traces as msgspec structs. Unknown fields are ignored, null is as if left out."""

from msgspec import Raw, Struct

Integer = int | str | float | None  # 64-bit ones come as strings, from JavaScript as 1.0
Text = str | None


class AnyValue(Struct, gc=False):
    """One of the fields is set, or none."""

    stringValue: Text = None
    boolValue: bool | None = None
    intValue: Integer = None
    doubleValue: int | float | str | None = None  # "NaN", "Infinity", "-Infinity"
    arrayValue: "ArrayValue | None" = None
    kvlistValue: "KeyValueList | None" = None
    bytesValue: Text = None


class ArrayValue(Struct, gc=False):
    values: list[AnyValue | None] | None = None


class KeyValue(Struct, gc=False):
    key: str = ""
    value: AnyValue | None = None


class KeyValueList(Struct, gc=False):
    values: list[KeyValue] | None = None


class Event(Struct, gc=False):
    timeUnixNano: Integer = None
    name: Text = None
    attributes: list[KeyValue] | None = None


class Link(Struct, gc=False):
    traceId: Text = None
    spanId: Text = None
    traceState: Text = None
    attributes: list[KeyValue] | None = None


class Status(Struct, gc=False):
    message: Text = None
    code: Integer = None


class Span(Struct, gc=False):
    traceId: Text = None
    spanId: Text = None
    traceState: Text = None
    parentSpanId: Text = None
    name: Text = None
    kind: Integer = None
    startTimeUnixNano: Integer = None
    endTimeUnixNano: Integer = None
    attributes: list[KeyValue] | None = None
    events: list[Event] | None = None
    links: list[Link] | None = None
    status: Status | None = None
    flags: Integer = None


class Scope(Struct, gc=False):
    name: Text = None
    version: Text = None
    attributes: list[KeyValue] | None = None


class Resource(Struct, gc=False):
    attributes: list[KeyValue] | None = None


class ScopeSpans(Struct, gc=False):
    scope: Scope | None = None
    spans: list[Span] | None = None


class ResourceSpans(Struct, gc=False):
    resource: Resource | None = None
    scopeSpans: list[ScopeSpans] | None = None


class Request(Struct, gc=False):
    resourceSpans: list[ResourceSpans] | None = None


class RawScopeSpans(Struct, gc=False):
    """As ScopeSpans, with each span for itself: one that is wrong costs no other."""

    scope: Scope | None = None
    spans: list[Raw] | None = None


class RawResourceSpans(Struct, gc=False):
    resource: Resource | None = None
    scopeSpans: list[RawScopeSpans] | None = None


class RawRequest(Struct, gc=False):
    resourceSpans: list[RawResourceSpans] | None = None
