"""The scanner: one body into the open batch, blanked in place on the way."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.otlp.kernel.memory import compiled, entry, inlined
from tailburn.collector.otlp.kernel.namecodes import name_code
from tailburn.collector.otlp.kernel.names import UNLISTED
from tailburn.collector.otlp.kernel.span import span
from tailburn.collector.otlp.kernel.state import OK, state_at
from tailburn.collector.otlp.kernel.strays import resource, stray_attribute
from tailburn.collector.otlp.kernel.text import blank, clean
from tailburn.collector.otlp.kernel.wire import BAD, BYTES, REWRITE, extent, skip, tag

_MESSAGE: Final = 1  # field of the resource in ResourceSpans and of the scope in ScopeSpans
_CHILDREN: Final = 2
_SCHEMA: Final = 3


@compiled
def _head(state: int, p: int, end: int) -> tuple[int, int, int]:
    """First pass over ResourceSpans or ScopeSpans: status, and the extent of the message
    that says whose children these are, which may stand behind them."""
    c = state_at(state)
    a = p
    b = p
    seen = False
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD, a, b
        if wire != BYTES:
            p = skip(p, end, wire)
            if p < 0:
                return p, a, b
            continue
        start, stop = extent(p, end)
        if stop < 0:
            return BAD, a, b
        p = stop
        if field == _CHILDREN:
            continue
        if field == _MESSAGE:
            if seen:
                return REWRITE, a, b
            seen = True
            a, b = start, stop
        elif field == _SCHEMA:
            if clean(state, UNLISTED, start, stop, c.unlisted_bytes) < 0:
                return BAD, a, b
        else:
            blank(start, stop)
    return OK, a, b


@compiled
def _scope(state: int, p: int, end: int) -> int:
    """Clean an InstrumentationScope; its name's code and hash go to `scope_code` and `_hash`."""
    c = state_at(state)
    c.scope_code = 0
    c.name_hash = 0
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire != BYTES:
            p = skip(p, end, wire)
            if p < 0:
                return p
            continue
        a, b = extent(p, end)
        if b < 0:
            return BAD
        p = b
        status = OK
        if field == 1:
            status = name_code(state, a, b, c.name_bytes)
            c.scope_code = status
        elif field == 2:
            status = clean(state, UNLISTED, a, b, c.unlisted_bytes)
        elif field == 3:
            status, _ = stray_attribute(state, a, b)
        else:
            blank(a, b)
        if status < 0:
            return status
    c.scope_hash = c.name_hash
    return OK


@inlined
def _scope_spans(state: int, p: int, end: int) -> int:
    status, a, b = _head(state, p, end)
    if status == OK:
        status = _scope(state, a, b)
    if status < 0:
        return status
    while p < end:
        field, wire, p = tag(p, end)
        if wire != BYTES:
            p = skip(p, end, wire)
            continue
        a, b = extent(p, end)
        p = b
        if field == _CHILDREN:
            status = span(state, a, b)
            if status < 0:
                return status
    return OK


@inlined
def _resource_spans(state: int, p: int, end: int) -> int:
    status, a, b = _head(state, p, end)
    if status == OK:
        status = resource(state, a, b)
    if status < 0:
        return status
    while p < end:
        field, wire, p = tag(p, end)
        if wire != BYTES:
            p = skip(p, end, wire)
            continue
        a, b = extent(p, end)
        p = b
        if field == _CHILDREN:
            status = _scope_spans(state, a, b)
            if status < 0:
                return status
    return OK


@inlined
def _request(state: int, p: int, end: int) -> int:
    c = state_at(state)
    c.readable = end
    c.span_index = 0
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire != BYTES:
            p = skip(p, end, wire)
            if p < 0:
                return p
            continue
        a, b = extent(p, end)
        if b < 0:
            return BAD
        p = b
        if field != 1:
            blank(a, b)
            continue
        status = _resource_spans(state, a, b)
        if status < 0:
            return status
    return OK


@entry
def scan(state: int, body: NDArray[np.uint8], received_ns: int, tenant: int) -> int:
    """Append the spans of an ExportTraceServiceRequest to the open batch of the state at
    this address, blanking the body in place.

    Returns OK, FULL (grow the group `full` and begin again), BAD (what is wrong begins
    at `at`), or REWRITE. After all but OK the batch is as it was.
    """
    c = state_at(state)
    c.received = received_ns
    c.tenant = tenant
    c.rejected = 0
    c.reject_rows = 0
    spans, wanted, nums = c.spans, c.wanted, c.nums
    strs, bytes_, events = c.strs, c.bytes, c.events
    attributes, dropped, cut = c.dropped_attributes, c.dropped_events, c.cut_values
    start = np.int64(body.ctypes.data)
    status = _request(state, start, start + len(body))
    if status < 0:
        c.spans, c.wanted, c.nums = spans, wanted, nums
        c.strs, c.bytes, c.events = strs, bytes_, events
        c.dropped_attributes, c.dropped_events, c.cut_values = attributes, dropped, cut
    return status
