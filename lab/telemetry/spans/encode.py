"""Spans as columns -> Span messages of OTLP, in one compiled pass.

Every message is written to its end and its length set before it afterwards: where the length
takes more bytes than were left for it, what was written moves up. All lengths and numbers are
as short as protobuf makes them, so that a body is byte for byte what an SDK would send.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.compiled import compiled, inlined
from tailburn.lab.telemetry.spans.template import ABSENT, Of, Op

U8 = NDArray[np.uint8]

_CONST, _TRACE_ID, _SPAN_ID, _PARENT_ID = (
    int(Op.CONST),
    int(Op.TRACE_ID),
    int(Op.SPAN_ID),
    int(Op.PARENT_ID),
)
_FLAGS, _START, _END, _NAME = int(Op.FLAGS), int(Op.START), int(Op.END), int(Op.NAME)
_ATTRIBUTE, _EVENT, _EVENT_END = int(Op.ATTRIBUTE), int(Op.EVENT), int(Op.EVENT_END)
_STATUS, _LINK = int(Op.STATUS), int(Op.LINK)
_INT, _DOUBLE, _BOOL, _TEXT = int(Of.INT), int(Of.DOUBLE), int(Of.BOOL), int(Of.TEXT)
_HEX16, _HEX8, _UUID, _HEX32 = int(Of.HEX16), int(Of.HEX8), int(Of.UUID), int(Of.HEX32)
_DECIMAL, _CENTI, _TRACE, _PARENT = int(Of.DECIMAL), int(Of.CENTI), int(Of.TRACE), int(Of.PARENT)
_LIST = int(Of.LIST)
_GOLDEN = 0x9E3779B97F4A7C15


@inlined
def _copy(out: U8, at: int, source: U8, start: int, length: int) -> int:
    for i in range(length):
        out[at + i] = source[start + i]
    return at + length


@inlined
def _put_varint(out: U8, at: int, number: Any) -> int:
    left = np.uint64(number)
    while left > np.uint64(127):
        out[at] = np.uint8(left & np.uint64(127) | np.uint64(128))
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@inlined
def _put_fixed64(out: U8, at: int, number: Any) -> int:
    left = np.uint64(number)
    for i in range(8):
        out[at + i] = np.uint8(left & np.uint64(255))
        left >>= np.uint64(8)
    return at + 8


@inlined
def _put_id(out: U8, at: int, number: Any) -> int:
    left = np.uint64(number)
    for i in range(8):
        out[at + 7 - i] = np.uint8(left & np.uint64(255))
        left >>= np.uint64(8)
    return at + 8


@inlined
def _put_hex(out: U8, at: int, number: Any, digits: int) -> int:
    """The highest `digits` hex digits of 16."""
    left = np.uint64(number)
    for i in range(digits):
        digit = np.uint8((left >> np.uint64(60 - 4 * i)) & np.uint64(15))
        out[at + i] = digit + (np.uint8(48) if digit < 10 else np.uint8(87))
    return at + digits


@inlined
def _put_decimal(out: U8, at: int, number: Any) -> int:
    left = np.uint64(number)
    digits = 1
    rest = left // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits):
        out[at + digits - 1 - i] = np.uint8(48) + np.uint8(left % np.uint64(10))
        left //= np.uint64(10)
    return at + digits


@inlined
def _close(out: U8, body: int, at: int) -> int:
    """Set the length before a body that begins at `body`; one byte was left for it."""
    length = at - body
    if length < 128:
        out[body - 1] = np.uint8(length)
        return at
    extra = 1 if length < 16_384 else 2
    for i in range(length):
        out[at - 1 - i + extra] = out[at - 1 - i]
    out[body - 1] = np.uint8(length & 127 | 128)
    if extra == 1:
        out[body] = np.uint8(length >> 7)
    else:
        out[body] = np.uint8(length >> 7 & 127 | 128)
        out[body + 1] = np.uint8(length >> 14)
    return at + extra


@inlined
def _put_text(
    out: U8, at: int, of: int, value: int, high: Any, low: Any, parent: Any,
    texts: U8, text_at: NDArray[np.int64],
) -> int:  # fmt: skip
    """A text by what its slot holds."""
    number = np.uint64(value)
    if of in (_TEXT, _LIST):
        return _copy(out, at, texts, text_at[value], text_at[value + 1] - text_at[value])
    if of == _HEX16:
        return _put_hex(out, at, number, 16)
    if of == _HEX8:
        return _put_hex(out, at, number, 8)
    if of == _TRACE:
        return _put_hex(out, _put_hex(out, at, high, 16), low, 16)
    if of == _PARENT:
        return _put_hex(out, at, parent, 16)
    if of == _DECIMAL:
        return _put_decimal(out, at, number)
    if of == _CENTI:
        at = _put_decimal(out, at, number // np.uint64(100))
        out[at] = np.uint8(46)
        out[at + 1] = np.uint8(48) + np.uint8(number // np.uint64(10) % np.uint64(10))
        out[at + 2] = np.uint8(48) + np.uint8(number % np.uint64(10))
        return at + 3
    other = (number ^ (number >> np.uint64(31))) * np.uint64(_GOLDEN)
    if of == _HEX32:
        return _put_hex(out, _put_hex(out, at, number, 16), other, 16)
    at = _put_hex(out, at, number, 8)
    out[at] = np.uint8(45)
    at = _put_hex(out, at + 1, number << np.uint64(32), 4)
    out[at], out[at + 1] = np.uint8(45), np.uint8(52)  # version 4
    at = _put_hex(out, at + 2, number << np.uint64(52), 3)
    out[at], out[at + 1] = np.uint8(45), np.uint8(97)  # its variant
    at = _put_hex(out, at + 2, other, 3)
    out[at] = np.uint8(45)
    return _put_hex(out, at + 1, other << np.uint64(12), 12)


@inlined
def _put_value(
    out: U8, at: int, op: NDArray[np.int32], value: int, high: Any, low: Any, parent: Any,
    blob: U8, texts: U8, text_at: NDArray[np.int64],
) -> int:  # fmt: skip
    """The fields of an AnyValue."""
    of = op[2]
    if of == _INT:
        out[at] = np.uint8(0x18)
        return _put_varint(out, at + 1, value)
    if of == _DOUBLE:
        out[at] = np.uint8(0x21)
        return _put_fixed64(out, at + 1, value)
    if of == _BOOL:
        out[at] = np.uint8(0x10)
        out[at + 1] = np.uint8(value)
        return at + 2
    listed = at
    if of == _LIST:
        out[at], out[at + 2] = np.uint8(0x2A), np.uint8(0x0A)
        at += 4
    out[at] = np.uint8(0x0A)
    body = at + 2
    at = _copy(out, body, blob, op[3] + op[4], op[5])
    at = _put_text(out, at, of, value, high, low, parent, texts, text_at)
    at = _copy(out, at, blob, op[3] + op[4] + op[5], op[6])
    at = _close(out, body, at)
    if of == _LIST:  # texts in lists are short: their lengths take a byte each
        out[listed + 3] = np.uint8(at - listed - 4)
        out[listed + 1] = np.uint8(at - listed - 2)
    return at


@compiled
def write_spans(
    out: U8,
    ends: NDArray[np.int64],
    order: NDArray[np.int64],
    kind: NDArray[np.int32],
    trace: NDArray[np.uint64],
    span: NDArray[np.uint64],
    parent: NDArray[np.uint64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    shift: NDArray[np.int64],
    flags: NDArray[np.int32],
    status: NDArray[np.int32],
    slot_at: NDArray[np.int64],
    slots: NDArray[np.int64],
    ops: NDArray[np.int32],
    first: NDArray[np.int32],
    blob: U8,
    texts: U8,
    text_at: NDArray[np.int64],
    statuses: U8,
    status_at: NDArray[np.int64],
) -> int:
    """Write spans `order` one after another, each with its tag and length; where it ends.

    `ends[i]` is set to where the i-th one ends. `shift` is the host's clock minus true time,
    added to every instant. `out` must hold them all (`Programs.size`).
    """
    at = 0
    for i in range(order.size):
        s = order[i]
        out[at] = np.uint8(0x12)
        span_body = at + 2
        at = span_body
        event_body = 0
        base = slot_at[s]
        k = first[kind[s]]
        last = first[kind[s] + 1]
        while k < last:
            op = ops[k]
            code = op[0]
            k += 1
            if code == _CONST:
                at = _copy(out, at, blob, op[1], op[2])
            elif code in (_ATTRIBUTE, _NAME):
                value = slots[base + op[1]]
                if value == ABSENT:
                    continue
                out[at] = np.uint8(op[7])
                body = at + 2
                if code == _NAME:
                    at = _copy(out, body, blob, op[3] + op[4], op[5])
                    at = _put_text(
                        out, at, op[2], value, trace[s, 0], trace[s, 1], parent[s], texts, text_at
                    )
                    at = _copy(out, at, blob, op[3] + op[4] + op[5], op[6])
                else:
                    at = _copy(out, body, blob, op[3], op[4])
                    out[at] = np.uint8(0x12)
                    inner = at + 2
                    at = _put_value(
                        out, inner, op, value, trace[s, 0], trace[s, 1], parent[s],
                        blob, texts, text_at,
                    )  # fmt: skip
                    at = _close(out, inner, at)
                at = _close(out, body, at)
            elif code == _TRACE_ID:
                out[at], out[at + 1] = np.uint8(0x0A), np.uint8(16)
                at = _put_id(out, _put_id(out, at + 2, trace[s, 0]), trace[s, 1])
            elif code == _SPAN_ID:
                out[at], out[at + 1] = np.uint8(0x12), np.uint8(8)
                at = _put_id(out, at + 2, span[s])
            elif code == _PARENT_ID:
                if parent[s]:
                    out[at], out[at + 1] = np.uint8(0x22), np.uint8(8)
                    at = _put_id(out, at + 2, parent[s])
            elif code == _START:
                out[at] = np.uint8(0x39)
                at = _put_fixed64(out, at + 1, start[s] + shift[s])
            elif code == _END:
                out[at] = np.uint8(0x41)
                at = _put_fixed64(out, at + 1, end[s] + shift[s])
            elif code == _EVENT:
                value = slots[base + op[1]]
                if value == ABSENT:
                    k += op[4]
                    continue
                out[at] = np.uint8(0x5A)
                event_body = at + 2
                out[event_body] = np.uint8(0x09)
                at = _put_fixed64(out, event_body + 1, value + shift[s])
                at = _copy(out, at, blob, op[2], op[3])
            elif code == _EVENT_END:
                at = _close(out, event_body, at)
            elif code == _STATUS:
                which = status[s]
                begun = status_at[which]
                at = _copy(out, at, statuses, begun, status_at[which + 1] - begun)
            elif code == _LINK:
                value = slots[base + op[1]]
                if value != ABSENT:
                    out[at], out[at + 1] = np.uint8(0x6A), np.uint8(28)
                    out[at + 2], out[at + 3] = np.uint8(0x0A), np.uint8(16)
                    at = _put_id(out, _put_id(out, at + 4, trace[s, 0]), trace[s, 1])
                    out[at], out[at + 1] = np.uint8(0x12), np.uint8(8)
                    at = _put_id(out, at + 2, np.uint64(value))
            elif code == _FLAGS and flags[s]:
                out[at], out[at + 1] = np.uint8(0x85), np.uint8(1)
                left = flags[s]
                for b in range(4):
                    out[at + 2 + b] = np.uint8(left & 255)
                    left >>= 8
                at += 6
        at = _close(out, span_body, at)
        ends[i] = at
    return at
