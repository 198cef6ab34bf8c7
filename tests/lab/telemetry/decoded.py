"""Bodies as protobuf's own decoder reads them, and what a kind of span looks like."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

Key = tuple[str, str, str, int]
"""Service, scope, name, kind."""


def value(any_value: AnyValue) -> Any:
    which = any_value.WhichOneof("value")
    if which == "array_value":
        return [value(v) for v in any_value.array_value.values]
    return None if which is None else getattr(any_value, which)


@dataclass
class Span:
    """One span as it was sent."""

    received_ns: int
    resource: dict[str, Any]
    scope: tuple[str, str, str]
    name: str
    kind: int
    trace: bytes
    id: bytes
    parent: bytes
    flags: int
    status: int
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]
    links: int

    @property
    def service(self) -> str:
        return str(self.resource.get("service.name", ""))


def spans_of(bodies: Iterable[tuple[int, bytes]]) -> list[Span]:
    """Every span, in the order it came."""
    found = []
    for at, body in bodies:
        for rs in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = {a.key: value(a.value) for a in rs.resource.attributes}
            for ss in rs.scope_spans:
                scope = (ss.scope.name, ss.scope.version, ss.schema_url)
                for s in ss.spans:
                    found.append(_span(at, resource, scope, s))
    return found


def _span(at: int, resource: dict[str, Any], scope: tuple[str, str, str], s: Any) -> Span:
    def attributes(of: Any) -> dict[str, Any]:
        return {a.key: value(a.value) for a in of}

    events = [(e.name, e.time_unix_nano, attributes(e.attributes)) for e in s.events]
    return Span(
        at, resource, scope, s.name, s.kind, s.trace_id, s.span_id, s.parent_span_id, s.flags,
        s.status.code, s.start_time_unix_nano, s.end_time_unix_nano, attributes(s.attributes),
        events, len(s.links),
    )  # fmt: skip


@dataclass
class Shape:
    """What the spans of one kind have in common, and what they may have."""

    always: dict[str, str] = field(default_factory=dict)
    """Attributes on every span: key to type."""
    some: dict[str, str] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    """Scope and name of parents, `root` or `missing`."""
    flags: set[int] = field(default_factory=set)
    statuses: set[int] = field(default_factory=set)
    scopes: set[tuple[str, str, str]] = field(default_factory=set)
    events: dict[str, dict[str, str]] = field(default_factory=dict)
    count: int = 0


def shapes(
    spans: Iterable[Span], rename: Any = lambda name: name
) -> dict[tuple[str, str, int], Shape]:
    """By scope, name (as `rename` makes it) and kind."""
    spans = list(spans)
    by_id = {(s.trace, s.id): s for s in spans}
    groups = defaultdict(list)
    for s in spans:
        groups[s.scope[0], rename(s.name), s.kind].append(s)
    found = {}
    for key, group in groups.items():
        shape = found[key] = Shape(count=len(group))
        for s in group:
            types = {k: type(v).__name__ for k, v in s.attributes.items()}
            shape.some |= types
            parent = by_id.get((s.trace, s.parent))
            where = "missing" if s.parent else "root"
            shape.parents.add(f"{parent.scope[0]} {rename(parent.name)}" if parent else where)
            shape.flags.add(s.flags)
            shape.statuses.add(s.status)
            shape.scopes.add(s.scope)
            for name, _, attributes in s.events:
                types = {k: type(v).__name__ for k, v in attributes.items()}
                shape.events[name] = shape.events.get(name, {}) | types
        shape.always = {
            k: t for k, t in shape.some.items() if all(k in s.attributes for s in group)
        }
    return found
