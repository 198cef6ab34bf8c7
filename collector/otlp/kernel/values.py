"""Attribute values: KeyValue and AnyValue messages, and nested ones as JSON text."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.memory import (
    as_float,
    compiled,
    copy,
    fill,
    load8,
    load64,
    load64i,
    signed,
    store8,
    store64,
)
from tailburn.collector.otlp.kernel.names import (
    HIDDEN,
    NUMBERS_BLANKED,
    TAINTED,
    UNLISTED,
    class_of_name,
)
from tailburn.collector.otlp.kernel.numbers import write_base64, write_float, write_int
from tailburn.collector.otlp.kernel.state import state_at
from tailburn.collector.otlp.kernel.text import blank, clean, clean_bytes
from tailburn.collector.otlp.kernel.wire import (
    BAD,
    BYTES,
    FIXED64,
    REWRITE,
    VARINT,
    extent,
    skip,
    tag,
    varint,
    whole_characters,
)

# Fields of AnyValue, and so kinds of a value.
NOTHING: Final = 0
STRING: Final = 1
BOOL: Final = 2
INT: Final = 3
DOUBLE: Final = 4
ARRAY: Final = 5
KVLIST: Final = 6
RAW: Final = 7
_INDEX: Final = 8  # of a string table that traces don't have

# numpy numbers, since numba compiles a function anew for each literal it is called with
_QUOTE: Final = np.int64(34)
_MINUS: Final = np.int64(45)
_COMMA: Final = np.int64(44)
_ZERO: Final = np.int64(48)
_COLON: Final = np.int64(58)
_BRACKET: Final = np.int64(91)
_BACKSLASH: Final = np.int64(92)
_U: Final = np.int64(117)
_BRACE: Final = np.int64(123)
_NULL: Final = np.int64(int.from_bytes(b"null", "little"))
_TRUE: Final = np.int64(int.from_bytes(b"true", "little"))
_FALSE: Final = np.int64(int.from_bytes(b"false", "little"))
_NAN: Final = np.int64(int.from_bytes(b"NaN", "little"))
_INFINITY: Final = np.int64(int.from_bytes(b"Infinity", "little"))

_KEY_TAG: Final = 0x0A
_VALUE_TAG: Final = 0x12
_STRING_TAG: Final = 0x0A
_BOOL_TAG: Final = 0x10
_INT_TAG: Final = 0x18
_DOUBLE_TAG: Final = 0x21

_FRAME: Final = 40  # end, resume, kind, class, elements
FRAMES_BYTES: Final = _FRAME * 64


@compiled
def any_value(p: int, end: int) -> tuple[int, int, int]:
    """Kind, and the extent of the content: text, encoded number, or message. See `wire`."""
    kind = NOTHING
    start = p
    stop = p
    while p < end:
        field, wire, p = tag(p, end)
        if p < 0:
            return NOTHING, 0, BAD
        a = p
        b = p
        if wire == BYTES:
            a, b = extent(p, end)
        else:
            b = skip(p, end, wire)
        if b < 0:
            return NOTHING, 0, b
        if wire == BYTES:
            known = field in (STRING, ARRAY, KVLIST, RAW)
        elif wire == VARINT:
            known = field in (BOOL, INT, _INDEX)
        else:
            known = wire == FIXED64 and field == DOUBLE
        if known:
            if kind != NOTHING:
                return NOTHING, 0, REWRITE
            kind, start, stop = field, a, b
        elif wire == BYTES:
            blank(a, b)
        p = b
    return kind, start, stop


@compiled
def key_value(p: int, end: int) -> tuple[int, int, int, int, int]:
    """Extent of the key, and `any_value` of the value."""
    key = p
    key_end = p
    kind = NOTHING
    start = p
    stop = p
    seen = 0
    while p < end:
        field, wire, p = tag(p, end)
        if p < 0:
            return 0, 0, NOTHING, 0, BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0:
                return 0, 0, NOTHING, 0, BAD
            if field == 1 or field == 2:
                if seen & field:
                    return 0, 0, NOTHING, 0, REWRITE
                seen |= field
                if field == 1:
                    key, key_end = a, b
                else:
                    kind, start, stop = any_value(a, b)
                    if stop < 0:
                        return 0, 0, NOTHING, 0, stop
            else:
                blank(a, b)
            p = b
        else:
            p = skip(p, end, wire)
            if p < 0:
                return 0, 0, NOTHING, 0, p
    return key, key_end, kind, start, stop


@compiled
def usual_key_value(p: int, end: int) -> tuple[int, int, int, int, int]:
    """As `key_value`, quick for what exporters write: a key and one value, lengths below 128.

    Everything else goes to `key_value`.
    """
    if end - p < 5 or load8(p) != _KEY_TAG or load8(p + 1) > 127:
        return key_value(p, end)
    key = p + 2
    key_end = key + load8(p + 1)
    start = key_end + 4
    if start > end or load8(key_end) != _VALUE_TAG or end - key_end > 127:
        return key_value(p, end)
    if load8(key_end + 1) != end - key_end - 2:
        return key_value(p, end)
    kind = load8(key_end + 2)
    if kind == _STRING_TAG and load8(key_end + 3) == end - start:
        return key, key_end, STRING, start, end
    if kind == _DOUBLE_TAG and end - start == 7:
        return key, key_end, DOUBLE, start - 1, end
    short = start == end and load8(start - 1) < 128
    if short and (kind in (_INT_TAG, _BOOL_TAG)):
        return key, key_end, kind >> 3, start - 1, end
    return key_value(p, end)


@compiled
def int_at(p: int, end: int) -> int:
    """The varint that fills the extent, as int64."""
    value, _ = varint(p, end)
    return signed(value)


@compiled
def zero(kind: int, p: int, end: int) -> None:
    """Make an encoded number 0 in place."""
    if kind == DOUBLE:
        fill(p, 0, end - p)
    else:
        fill(p, 0x80, end - p - 1)
        store8(end - 1, 0)


@compiled
def _put(state: int, byte: int) -> None:
    c = state_at(state)
    if c.scratch_used < c.value_bytes and not c.scratch_full:
        store8(c.scratch + c.scratch_used, byte)
        c.scratch_used += 1
    else:
        c.scratch_full = 1


@compiled
def _put_name(state: int, packed: int) -> None:
    """Append at most eight ASCII characters, the first one lowest."""
    while packed:
        _put(state, packed & 0xFF)
        packed >>= 8


@compiled
def _put_text(state: int, p: int, end: int) -> None:
    """Append UTF-8 to the scratch text, cut where that is full."""
    c = state_at(state)
    if c.scratch_full:
        return
    stop = whole_characters(p, end, c.value_bytes - c.scratch_used)
    copy(c.scratch + c.scratch_used, p, stop - p)
    c.scratch_used += stop - p
    if stop < end:
        c.scratch_full = 1


@compiled
def _put_string(state: int, p: int, end: int) -> None:
    """Append UTF-8 as a JSON string."""
    c = state_at(state)
    _put(state, _QUOTE)
    plain = p
    while p < end and not c.scratch_full:
        byte = load8(p)
        if byte < 32 or byte == 34 or byte == 92:
            _put_text(state, plain, p)
            _put(state, _BACKSLASH)
            if byte >= 32:
                _put(state, byte)
            else:
                _put(state, _U)
                _put(state, _ZERO)
                _put(state, _ZERO)
                _put(state, 48 + (byte >> 4))
                low = byte & 15
                _put(state, 48 + low if low < 10 else 87 + low)
            plain = p + 1
        p += 1
    _put_text(state, plain, p)
    _put(state, _QUOTE)


@compiled
def _put_double(state: int, value: float) -> None:
    c = state_at(state)
    if c.scratch_full:
        return
    if np.isfinite(value):
        _put_text(state, c.pad, write_float(c.form, c.pad, value))
        return
    _put(state, _QUOTE)
    if np.isnan(value):
        _put_name(state, _NAN)
    else:
        if value < 0:
            _put(state, _MINUS)
        _put_name(state, _INFINITY)
    _put(state, _QUOTE)


@compiled
def _put_scalar(state: int, class_: int, kind: int, p: int, end: int) -> int:
    """Clean a value that is no list, and append it as JSON; BAD if it is no UTF-8."""
    c = state_at(state)
    if kind == STRING:
        stop = clean(state, class_, p, end, c.unlisted_bytes)
        if stop < 0:
            return BAD
        _put_string(state, p, stop)
    elif kind == RAW:
        stop = clean_bytes(state, class_, p, end, c.unlisted_bytes)
        stop = min(stop, p + c.value_bytes // 4 * 3)
        _put(state, _QUOTE)
        _put_text(state, c.base64, write_base64(c.base64, p, stop))
        _put(state, _QUOTE)
    elif kind in (BOOL, INT, DOUBLE):
        if class_ & (NUMBERS_BLANKED | TAINTED):
            zero(kind, p, end)
        if kind == DOUBLE:
            _put_double(state, as_float(load64(p)))
        elif kind == INT:
            _put_text(state, c.pad, write_int(c.pad, int_at(p, end)))
        else:
            _put_name(state, _TRUE if int_at(p, end) else _FALSE)
    else:
        _put_name(state, _NULL)
    return 0


@compiled
def class_of_key(state: int, p: int, end: int) -> int:
    """The class of a name that no dictionary holds; blanks it when it holds a secret."""
    c = state_at(state)
    if end - p > c.name_bytes:
        blank(p, end)
        return TAINTED
    class_ = class_of_name(c.names, p, end)
    if clean_bytes(state, UNLISTED, p, end, c.name_bytes) != end:
        blank(p, end)
        class_ |= TAINTED
    return class_


@compiled
def render(state: int, class_: int, kind: int, p: int, end: int) -> int:
    """Clean a value in place and write it as JSON to the scratch text.

    Returns 0, or BAD, or REWRITE when it nests too deep. An explicit stack, since cached
    compiled functions may not call themselves.
    """
    c = state_at(state)
    c.scratch_used = 0
    c.scratch_full = 0
    depth = 0
    resume = end
    while True:
        if kind in (ARRAY, KVLIST):
            if depth >= c.nesting:
                return REWRITE
            frame = c.frames + depth * _FRAME
            store64(frame, end)
            store64(frame + 8, resume)
            store64(frame + 16, kind)
            store64(frame + 24, class_)
            store64(frame + 32, 0)
            depth += 1
            _put(state, _BRACKET if kind == ARRAY else _BRACE)
        else:
            status = _put_scalar(state, class_, kind, p, end)
            if status < 0:
                return status
            p = resume
        if depth == 0:
            return 0
        kind, p, end, resume, class_, depth = _next_element(state, p, depth)
        if end < 0:
            return end
        if depth == 0:
            return 0


@compiled
def _next_element(state: int, p: int, depth: int) -> tuple[int, int, int, int, int, int]:
    """From `p`, inside the innermost open list, to the next value: kind, extent, what follows
    it, its class, and the depth, which is 0 when all lists are closed."""
    c = state_at(state)
    while depth > 0:
        frame = c.frames + (depth - 1) * _FRAME
        frame_end = load64i(frame)
        list_kind = load64i(frame + 16)
        if p >= frame_end:
            _put(state, (_BRACKET if list_kind == ARRAY else _BRACE) + 2)
            p = load64i(frame + 8)
            depth -= 1
            continue
        field, wire, p = tag(p, frame_end)
        if p < 0:
            return NOTHING, 0, BAD, 0, 0, depth
        if wire != BYTES:
            p = skip(p, frame_end, wire)
            if p < 0:
                return NOTHING, 0, p, 0, 0, depth
            continue
        a, b = extent(p, frame_end)
        if b < 0:
            return NOTHING, 0, BAD, 0, 0, depth
        if field != 1:
            blank(a, b)
            p = b
            continue
        class_ = load64i(frame + 24)
        if load64i(frame + 32):
            _put(state, _COMMA)
        store64(frame + 32, 1)
        if list_kind == ARRAY:
            kind, start, stop = any_value(a, b)
            return kind, start, stop, b, class_, depth
        key, key_end, kind, start, stop = key_value(a, b)
        if stop < 0:
            return NOTHING, 0, stop, 0, 0, depth
        if clean(state, class_ & HIDDEN, key, key_end, c.name_bytes) < 0:
            return NOTHING, 0, BAD, 0, 0, depth
        class_ |= class_of_key(state, key, key_end)
        _put_string(state, key, key if class_ & TAINTED else key_end)
        _put(state, _COLON)
        return kind, start, stop, b, class_, depth
    return NOTHING, p, p, p, 0, 0
