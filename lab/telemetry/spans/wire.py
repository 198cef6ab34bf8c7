"""The constant parts of OTLP trace messages, as protobuf puts them on the wire.

Written by hand, not by protobuf's own encoder, because a body is put together from pieces
that are made once; protobuf's decoder judges it in the tests.
"""

import struct
from collections.abc import Mapping
from typing import Any

Value = str | bool | int | float | tuple[str, ...]


def varint(number: int) -> bytes:
    """Base-128, least significant first; negative numbers as their 64-bit two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, body: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def text(number: int, value: str) -> bytes:
    """A string field; left out when empty, as protobuf does."""
    return field(number, value.encode()) if value else b""


def any_value(value: Value) -> bytes:
    """An AnyValue message. An empty string is kept: it is set, to nothing."""
    if isinstance(value, bool):
        return bytes([0x10, value])
    if isinstance(value, str):
        return field(1, value.encode())
    if isinstance(value, int):
        return b"\x18" + varint(value)
    if isinstance(value, float):
        return b"\x21" + struct.pack("<d", value)
    return field(5, b"".join(field(1, any_value(item)) for item in value))


def key_value(number: int, key: str, value: Value) -> bytes:
    """A KeyValue under field `number` of its message."""
    return field(number, text(1, key) + field(2, any_value(value)))


def resource(attributes: Mapping[str, Any]) -> bytes:
    """The field `resource` of ResourceSpans."""
    return field(1, b"".join(key_value(1, key, value) for key, value in attributes.items()))


def scope(name: str, version: str = "") -> bytes:
    """The field `scope` of ScopeSpans."""
    return field(1, text(1, name) + text(2, version))


def status(code: int, message: str = "") -> bytes:
    """The field `status` of a Span: always there, empty when unset, as the SDKs write it."""
    return field(15, text(2, message) + (b"\x18" + varint(code) if code else b""))
