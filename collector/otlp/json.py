"""OTLP/JSON traces to protobuf bytes, so that both encodings share one path, one digest and
one form of the log."""

import base64
import binascii
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.limits import DEFAULT
from tailburn.collector.otlp.messages import (
    AnyValue,
    Event,
    Integer,
    KeyValue,
    Link,
    RawRequest,
    Request,
    Resource,
    Scope,
    Span,
    Status,
)

_REQUEST: Final = msgspec.json.Decoder(Request)
_RAW_REQUEST: Final = msgspec.json.Decoder(RawRequest)
_SPAN: Final = msgspec.json.Decoder(Span)

_KINDS: Final = {
    f"SPAN_KIND_{name}": i
    for i, name in enumerate(
        ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
    )
}
_STATUSES: Final = {f"STATUS_CODE_{name}": i for i, name in enumerate(("UNSET", "OK", "ERROR"))}
_SHOWN_NAME: Final = 64
_CACHED_KEY: Final = 100


@dataclass(frozen=True)
class Converted:
    """The body in protobuf. `rejected` of its spans are not in it: `message` is for the sender."""

    body: bytearray
    rejected: int
    message: str


class _BadSpan(ValueError):
    """A span that can't be written in protobuf; the text says which field and why."""


def _varint(value: int) -> bytes:
    """A non-negative integer below 2^64."""
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT: Final = [_varint(i) for i in range(1 << 14)]


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    length = len(content)
    prefix = _SHORT[length] if length < len(_SHORT) else _varint(length)
    return _SHORT[number << 3 | 2] + prefix + content


def _text(number: int, text: str | None) -> bytes:
    return _field(number, text.encode()) if text else b""


def _unsigned(number: int, value: int) -> bytes:
    return _SHORT[number << 3] + _varint(value) if value else b""


def _fixed64(number: int, value: int) -> bytes:
    return _SHORT[number << 3 | 1] + value.to_bytes(8, "little") if value else b""


def _integer(value: Integer, field: str, low: int, high: int) -> int:
    """The integer that JSON meant. Raises _BadSpan."""
    if value is None:
        return 0
    try:
        number = int(value)
    except (ValueError, OverflowError):
        raise _BadSpan(f"{field} is {_shown(value)}, accepted: an integer") from None
    if not low <= number <= high or (isinstance(value, float) and number != value):
        raise _BadSpan(f"{field} is {_shown(value)}, accepted: an integer of 64 bits")
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_NAME else f"{text[:_SHOWN_NAME]}..."


def _time(value: Integer, field: str) -> int:
    return _integer(value, field, 0, (1 << 64) - 1)


def _enum(value: Integer, names: dict[str, int], field: str) -> int:
    if isinstance(value, str) and value in names:
        return names[value]
    number = _integer(value, field, -(1 << 31), (1 << 31) - 1)
    return number if 0 <= number < len(names) else 0


def _id(text: str | None, field: str, digits: int) -> bytes:
    """The bytes of a hex id; none for none. Raises _BadSpan."""
    if not text:
        return b""
    if len(text) == digits:
        try:
            return binascii.unhexlify(text)
        except ValueError:
            pass
    raise _BadSpan(f"{field} is {_shown(text)}, accepted: {digits} hex digits")


def _any_value(value: AnyValue, levels: int) -> bytes:
    if value.stringValue is not None:
        return _field(1, value.stringValue.encode())
    if value.intValue is not None:
        number = _integer(value.intValue, "intValue", -(1 << 63), (1 << 63) - 1)
        return b"\x18" + _varint(number & 0xFFFFFFFFFFFFFFFF)
    if value.doubleValue is not None:
        return b"\x21" + struct.pack("<d", _double(value.doubleValue))
    if value.boolValue is not None:
        return b"\x10\x01" if value.boolValue else b"\x10\x00"
    if value.bytesValue is not None:
        return _field(7, _base64(value.bytesValue))
    if levels == 0:
        return b""
    if value.arrayValue is not None:
        elements = value.arrayValue.values or ()
        return _field(
            5, b"".join(_field(1, _any_value(e, levels - 1) if e else b"") for e in elements)
        )
    if value.kvlistValue is not None:
        return _field(6, _attributes(1, value.kvlistValue.values, levels - 1))
    return b""


def _double(value: int | float | str) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _BadSpan(f"doubleValue is {_shown(value)}, accepted: a number") from None


def _base64(text: str) -> bytes:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        raise _BadSpan(f"bytesValue is {_shown(text)}, accepted: base64") from None


# Before a string value of up to 100 bytes: tag and length of the AnyValue, tag and length of
# the string in it. Most values are such, and half of the time goes into them.
_BEFORE_TEXT: Final = [bytes((0x12, n + 2, 0x0A, n)) for n in range(101)]


@lru_cache(maxsize=4096)
def _key(key: str) -> bytes:
    return _text(1, key)


def _value(value: AnyValue, levels: int) -> bytes:
    """The value of a KeyValue as its field 2."""
    text = value.stringValue
    if text is not None and len(text) <= 100:
        encoded = text.encode()
        if len(encoded) <= 100:
            return _BEFORE_TEXT[len(encoded)] + encoded
    return _field(2, _any_value(value, levels))


def _attributes(
    number: int, attributes: list[KeyValue] | None, levels: int = DEFAULT.nesting
) -> bytes:
    tag = _SHORT[number << 3 | 2]
    parts = []
    for attribute in attributes or ():
        key = attribute.key
        content = _key(key) if len(key) <= _CACHED_KEY else _text(1, key)
        if attribute.value is not None:
            content += _value(attribute.value, levels)
        length = len(content)
        parts.append(tag + (_SHORT[length] if length < len(_SHORT) else _varint(length)) + content)
    return b"".join(parts)


def _event(event: Event) -> bytes:
    return (
        _fixed64(1, _time(event.timeUnixNano, "timeUnixNano of an event"))
        + _text(2, event.name)
        + _attributes(3, event.attributes)
    )


def _link(link: Link) -> bytes:
    return (
        _field(1, _id(link.traceId, "traceId of a link", 32))
        + _field(2, _id(link.spanId, "spanId of a link", 16))
        + _text(3, link.traceState)
        + _attributes(4, link.attributes)
    )


def _status(status: Status) -> bytes:
    code = _enum(status.code, _STATUSES, "status.code")
    return _field(15, _text(2, status.message) + _unsigned(3, code))


def _span(span: Span) -> bytes:
    if span.startTimeUnixNano is None:
        raise _BadSpan("startTimeUnixNano is missing")
    if not span.traceId or not span.spanId:
        missing = "spanId" if span.traceId else "traceId"
        raise _BadSpan(f"{missing} is missing")
    flags = _integer(span.flags, "flags", 0, (1 << 32) - 1)
    parts = [
        _field(1, _id(span.traceId, "traceId", 32)),
        _field(2, _id(span.spanId, "spanId", 16)),
        _text(3, span.traceState),
        _field(4, parent) if (parent := _id(span.parentSpanId, "parentSpanId", 16)) else b"",
        _text(5, span.name),
        _unsigned(6, _enum(span.kind, _KINDS, "kind")),
        _fixed64(7, _time(span.startTimeUnixNano, "startTimeUnixNano")),
        _fixed64(8, _time(span.endTimeUnixNano, "endTimeUnixNano")),
        _attributes(9, span.attributes),
        *(_field(11, _event(event)) for event in span.events or ()),
        *(_field(13, _link(link)) for link in span.links or ()),
        _status(span.status) if span.status else b"",
        b"\x85\x01" + flags.to_bytes(4, "little") if flags else b"",
    ]
    return _field(2, b"".join(parts))


def _resource(resource: Resource | None) -> bytes:
    return _field(1, _attributes(1, resource.attributes)) if resource else b""


def _scope(scope: Scope | None) -> bytes:
    if scope is None:
        return b""
    content = _text(1, scope.name) + _text(2, scope.version) + _attributes(3, scope.attributes)
    return _field(1, content)


class _Rejects:
    """Counts spans that are left out; remembers why the first one was."""

    def __init__(self) -> None:
        self.seen = 0
        self.rejected = 0
        self.first = ""

    def reject(self, name: str | None, why: str) -> None:
        if self.rejected == 0:
            called = f" ({_shown(name)})" if name else ""
            self.first = f"span {self.seen}{called}: {why}"
        self.rejected += 1

    def message(self) -> str:
        if not self.rejected:
            return ""
        return f"{self.rejected} of {self.seen} spans rejected; first: {self.first}"


def _spans(spans: list[Span] | list[msgspec.Raw] | None, rejects: _Rejects) -> bytes:
    parts = []
    for given in spans or ():
        name = None
        try:
            span = given if isinstance(given, Span) else _SPAN.decode(given)
            name = span.name
            parts.append(_span(span))
        except (_BadSpan, msgspec.ValidationError) as error:
            rejects.reject(name, str(error))
        rejects.seen += 1
    return b"".join(parts)


def _decode(body: bytes | bytearray) -> Request | RawRequest:
    """The request, span by span if one of them is not as it should be. Raises BadBody."""
    try:
        try:
            return _REQUEST.decode(body)
        except msgspec.ValidationError:
            return _RAW_REQUEST.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadBody(f"body is no ExportTraceServiceRequest in JSON: {error}") from error
    except RecursionError as error:
        raise BadBody("body is nested too deep") from error


def to_protobuf(body: bytes | bytearray) -> Converted:
    """An ExportTraceServiceRequest in OTLP/JSON as protobuf.

    Hex ids in any case, enums as integers or names, 64-bit integers as strings or numbers. A
    span whose ids, times or values are none is left out and counted. Raises BadBody, with the
    position, if the whole is no such request.
    """
    request = _decode(body)
    rejects = _Rejects()
    out = bytearray()
    try:
        for group in request.resourceSpans or ():
            scopes = b"".join(
                _field(2, _scope(scoped.scope) + _spans(scoped.spans, rejects))
                for scoped in group.scopeSpans or ()
            )
            out += _field(1, _resource(group.resource) + scopes)
    except _BadSpan as error:
        raise BadBody(f"a resource or scope of the body: {error}") from error
    return Converted(out, rejects.rejected, rejects.message())
