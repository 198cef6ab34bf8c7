"""One Span message into the open batch, for compiled code."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.attributes import attribute
from tailburn.collector.otlp.kernel.buffers import GROUPS
from tailburn.collector.otlp.kernel.hashing import mix
from tailburn.collector.otlp.kernel.memory import (
    compiled,
    load32,
    load64,
    load64i,
    signed,
    store8,
    store32,
    store64,
    store_float,
)
from tailburn.collector.otlp.kernel.namecodes import name_code
from tailburn.collector.otlp.kernel.names import UNLISTED
from tailburn.collector.otlp.kernel.sampling import weight_of
from tailburn.collector.otlp.kernel.state import (
    BAD_PARENT_ID,
    BAD_SPAN_ID,
    BAD_TRACE_ID,
    FULL,
    OK,
    REJECTS,
    state_at,
)
from tailburn.collector.otlp.kernel.strays import stray_attribute
from tailburn.collector.otlp.kernel.text import blank, clean
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
)

_GROUP: Final = {name: i for i, name in enumerate(GROUPS)}
SPANS: Final = _GROUP["spans"]
EVENTS: Final = _GROUP["events"]

_GUESS_STRIDE: Final = 61
_TRACE_ID: Final = np.int64(16)
_SPAN_ID: Final = np.int64(8)
_EVENT: Final = np.int64(1)
_SPAN: Final = np.int64(0)
_LATEST: Final = np.uint64((1 << 63) - 1)
_TRACE_STATE_BYTES: Final = np.int64(512)
_MAX_KIND: Final = np.uint64(5)
_MAX_STATUS: Final = np.uint64(2)


@compiled
def _time(p: int) -> int:
    """The uint64 at `p` as int64, the latest there is if it is beyond."""
    value = load64(p)
    return signed(min(value, _LATEST))


@compiled
def _enum(value: np.uint64, highest: np.uint64) -> int:
    """A known value of an enum, or 0."""
    return signed(value) if value <= highest else 0


@compiled
def _event(state: int, p: int, end: int) -> int:
    c = state_at(state)
    time = np.int64(0)
    code = 0
    c.name_hash = 0
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0:
                return BAD
            status = OK
            if field == 2:
                code = name_code(state, a, b, c.event_name_bytes)
                status = code
                c.guess = code * _GUESS_STRIDE
            elif field == 3:
                status = attribute(state, a, b, _EVENT)
            else:
                blank(a, b)
            if status < 0:
                return status
            p = b
        else:
            at = p
            p = skip(p, end, wire)
            if p < 0:
                return p
            if field == 1 and wire == FIXED64:
                time = _time(at)
    c.event_sum += mix(c.name_hash, np.uint64(time))
    n = c.events
    first = load32(c.spans_events_end + 4 * (c.spans - 1)) if c.spans > 0 else np.uint64(0)
    if n - np.int64(first) >= c.max_events:
        c.dropped_events += 1
        return OK
    if n >= c.events_capacity:
        c.full = EVENTS
        return FULL
    store32(c.events_name + 4 * n, code)
    store64(c.events_ns + 8 * n, time)
    c.events = n + 1
    return OK


@compiled
def _link(state: int, p: int, end: int) -> int:
    """Clean a Link; nothing is kept of it."""
    c = state_at(state)
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0:
                return BAD
            status = OK
            if field == 3:
                status = clean(state, UNLISTED, a, b, _TRACE_STATE_BYTES)
            elif field == 4:
                status, _ = stray_attribute(state, a, b)
            elif not ((field == 1 and b - a == 16) or (field == 2 and b - a == 8)):
                blank(a, b)
            if status < 0:
                return status
            p = b
        else:
            p = skip(p, end, wire)
            if p < 0:
                return p
    return OK


@compiled
def _status(state: int, p: int, end: int) -> int:
    """Clean a Status; its code, or BAD or REWRITE."""
    c = state_at(state)
    code = 0
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0:
                return BAD
            if field == 2:
                if clean(state, UNLISTED, a, b, c.unlisted_bytes) < 0:
                    return BAD
            else:
                blank(a, b)
            p = b
        else:
            at = p
            p = skip(p, end, wire)
            if p < 0:
                return p
            if field == 3 and wire == VARINT:
                value, _ = varint(at, end)
                code = _enum(value, _MAX_STATUS)
    return code


@compiled
def _reject(state: int, reason: int, length: int) -> None:
    """Count a span that is not taken; its entries in other groups are the caller's to undo."""
    c = state_at(state)
    if c.rejected == 0:
        c.first_index = c.span_index
        c.first_reason = reason
        c.first_length = length
    c.rejected += 1
    last = c.rejects + 24 * (c.reject_rows - 1)
    known = c.reject_rows > 0 and load64i(last) == c.resource_code and load64i(last + 8) == reason
    if not known and c.reject_rows < REJECTS:
        last += 24
        c.reject_rows += 1
        store64(last, c.resource_code)
        store64(last + 8, reason)
        store64(last + 16, 0)
    store64(last + 16, load64i(last + 16) + 1)


@compiled
def _is_id(p: int, length: int, wanted: int) -> bool:
    """Whether the bytes are of the wanted length, 8 or 16, and not all zero."""
    if length != wanted:
        return False
    both = load64(p)
    if wanted == 16:
        both |= load64(p + 8)
    return both != np.uint64(0)


@compiled
def _append(
    state: int, trace: int, span_id: int, parent: np.uint64, start: int, end: int, digest: np.uint64
) -> None:
    """Write the row but for the columns that `span` writes while it reads."""
    c = state_at(state)
    n = c.spans
    store64(c.spans_trace_low + 8 * n, load64(trace))
    store64(c.spans_trace_high + 8 * n, load64(trace + 8))
    store64(c.spans_span + 8 * n, load64(span_id))
    store64(c.spans_parent + 8 * n, parent)
    store64(c.spans_start + 8 * n, start)
    store64(c.spans_end + 8 * n, end)
    store64(c.spans_received + 8 * n, c.received)
    store32(c.spans_tenant + 4 * n, c.tenant)
    store32(c.spans_scope + 4 * n, c.scope_code)
    store32(c.spans_resource + 4 * n, c.resource_code)
    store64(c.spans_digest + 8 * n, digest)
    store32(c.spans_wanted_end + 4 * n, c.wanted)
    store32(c.spans_nums_end + 4 * n, c.nums)
    store32(c.spans_strs_end + 4 * n, c.strs)
    store32(c.spans_events_end + 4 * n, c.events)
    weight = c.weight
    if weight == 1.0 and c.sample_rate > 1.0 and np.isfinite(c.sample_rate):
        weight = c.sample_rate
    store_float(c.spans_weight + 8 * n, weight)
    c.spans = n + 1


@compiled
def span(state: int, p: int, end: int) -> int:
    """Append the Span in [p, end), or count it as rejected. OK, FULL, BAD or REWRITE."""
    c = state_at(state)
    n = c.spans
    if n >= c.spans_capacity:
        c.full = SPANS
        return FULL
    wanted, nums, strs, bytes_, events = c.wanted, c.nums, c.strs, c.bytes, c.events
    c.stamp += 1
    c.guess = 0
    c.attributes = 0
    c.attribute_sum = 0
    c.event_sum = 0
    c.weight = 1.0
    c.sample_rate = 1.0
    trace = p
    trace_length = 0
    span_id = p
    span_length = 0
    parent_id = p
    parent_length = 0
    name = 0
    name_hash = np.uint64(1)
    kind = 0
    status_code = 0
    status_seen = False
    start = np.int64(0)
    stop = np.int64(0)
    flags = np.uint64(0)
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0:
                return BAD
            p = b
            status = OK
            if field == 9:
                status = attribute(state, a, b, _SPAN)
            elif field == 1:
                trace = a
                trace_length = b - a
            elif field == 2:
                span_id = a
                span_length = b - a
            elif field == 4:
                parent_id = a
                parent_length = b - a
            elif field == 5:
                name = name_code(state, a, b, c.name_bytes)
                name_hash = c.name_hash
                status = name
                c.guess = name * _GUESS_STRIDE
            elif field == 11:
                status = _event(state, a, b)
            elif field == 13:
                status = _link(state, a, b)
            elif field == 15:
                if status_seen:
                    return REWRITE
                status_seen = True
                status_code = _status(state, a, b)
                status = status_code
            elif field == 3:
                status = clean(state, UNLISTED, a, b, _TRACE_STATE_BYTES)
                if status > 0:
                    c.weight = weight_of(a, status)
            else:
                blank(a, b)
            if status < 0:
                return status
        else:
            at = p
            p = skip(p, end, wire)
            if p < 0:
                return p
            if wire == FIXED64:
                if field == 7:
                    start = _time(at)
                elif field == 8:
                    stop = _time(at)
            elif wire == VARINT:
                if field == 6:
                    value, _ = varint(at, end)
                    kind = _enum(value, _MAX_KIND)
            elif field == 16:
                flags = load32(at)
    reason = -1
    length = 0
    if not _is_id(trace, trace_length, _TRACE_ID):
        reason, length = BAD_TRACE_ID, trace_length
    elif not _is_id(span_id, span_length, _SPAN_ID):
        reason, length = BAD_SPAN_ID, span_length
    elif parent_length != 0 and parent_length != 8:
        reason, length = BAD_PARENT_ID, parent_length
    if reason >= 0:
        _reject(state, reason, length)
        c.wanted, c.nums, c.strs, c.bytes, c.events = wanted, nums, strs, bytes_, events
    else:
        parent = load64(parent_id) if parent_length == 8 else np.uint64(0)
        digest = mix(load64(trace), load64(trace + 8))
        digest = mix(digest, load64(span_id)) + mix(parent, np.uint64(start))
        digest = mix(digest, np.uint64(stop)) + mix(name_hash, c.scope_hash)
        digest = mix(digest, c.resource_hash + np.uint64(kind * 8 + status_code))
        digest = mix(digest, c.attribute_sum) ^ mix(c.event_sum, digest)
        store8(c.spans_kind + n, kind)
        store8(c.spans_status + n, status_code)
        store32(c.spans_flags + 4 * n, flags)
        store32(c.spans_name + 4 * n, name)
        _append(state, trace, span_id, parent, start, stop, digest)
    c.span_index += 1
    return OK
