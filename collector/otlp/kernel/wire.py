"""The protobuf wire format, read at addresses. Every read is checked against `end`.

A position of `BAD` says that the bytes are no protobuf; `REWRITE` that they are, in a form
that real exporters don't write (groups, a singular field twice), which protobuf's own
decoder puts into the usual form first: see `rewrite`.
"""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.memory import compiled, high16, load8, load64, signed

BAD: Final = -1
REWRITE: Final = -2

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
GROUP: Final = 3
FIXED32: Final = 5

_MAX_LENGTH: Final = np.uint64(0x7FFFFFFF)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)


@compiled
def varint(p: int, end: int) -> tuple[np.uint64, int]:
    """The value at `p`, and the position behind it."""
    if p >= end:
        return np.uint64(0), BAD
    byte = load8(p)
    if byte < 128:
        return np.uint64(byte), p + 1
    value = np.uint64(byte & 0x7F)
    shift = np.uint64(7)
    p += 1
    for i in range(9):
        if p >= end:
            return np.uint64(0), BAD
        byte = load8(p)
        p += 1
        if i == 8 and byte > 1:
            return np.uint64(0), BAD
        value |= np.uint64(byte & 0x7F) << shift
        if byte < 128:
            return value, p
        shift += np.uint64(7)
    return np.uint64(0), BAD


@compiled
def short_varint(p: int, end: int) -> tuple[np.uint64, int]:
    """As `varint`, of at most five bytes: tags and lengths are 32 bits wide."""
    if p < end:
        byte = load8(p)
        if byte < 128:
            return np.uint64(byte), p + 1
    value, after = varint(p, end)
    if after > p + 5:
        return value, BAD
    return value, after


@compiled
def tag(p: int, end: int) -> tuple[int, int, int]:
    """Field number, wire type, and the position behind the tag."""
    value, p = short_varint(p, end)
    field = signed(value >> np.uint64(3))
    if p < 0 or field == 0 or value > np.uint64(0xFFFFFFFF):
        return 0, 0, BAD
    return field, signed(value & np.uint64(7)), p


@compiled
def extent(p: int, end: int) -> tuple[int, int]:
    """Start and stop of the length-delimited field whose length stands at `p`; stop may be BAD."""
    length, p = short_varint(p, end)
    if p < 0 or length > _MAX_LENGTH:
        return 0, BAD
    stop = p + signed(length)
    if stop > end:
        return 0, BAD
    return p, stop


@compiled
def skip(p: int, end: int, wire: int) -> int:
    """The position behind a field that is not length-delimited."""
    if wire == VARINT:
        _, p = varint(p, end)
        return p
    if wire == GROUP:
        return REWRITE
    p += 8 if wire == FIXED64 else 4
    if p > end or (wire != FIXED64 and wire != FIXED32):
        return BAD
    return p


@compiled
def _continuation(p: int) -> bool:
    return (load8(p) & 0xC0) == 0x80


@compiled
def _wide(p: int, end: int) -> int:
    """The position behind the UTF-8 sequence of two to four bytes at `p`, or BAD."""
    lead = load8(p)
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or p + length > end:
        return BAD
    for i in range(1, length):
        if not _continuation(p + i):
            return BAD
    second = load8(p + 1)
    overlong = (lead == 0xE0 and second < 0xA0) or (lead == 0xF0 and second < 0x90)
    beyond = (lead == 0xED and second >= 0xA0) or (lead == 0xF4 and second >= 0x90)
    return BAD if overlong or beyond else p + length


@compiled
def is_utf8(p: int, end: int) -> bool:
    """Whether the bytes are UTF-8, as protobuf demands of every string."""
    while p < end:
        if p + 16 <= end and high16(p) == 0:
            p += 16
        elif p + 8 <= end and load64(p) & _HIGH_BITS == 0:
            p += 8
        elif load8(p) < 0x80:
            p += 1
        else:
            p = _wide(p, end)
            if p < 0:
                return False
    return True


@compiled
def whole_characters(p: int, end: int, limit: int) -> int:
    """The end of the longest start of the UTF-8 text that has at most `limit` bytes."""
    if end - p <= limit:
        return end
    stop = p + limit
    while stop > p and _continuation(stop):
        stop -= 1
    return stop
