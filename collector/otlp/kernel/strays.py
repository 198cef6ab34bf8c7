"""Messages whose attributes don't become columns: resources, scopes, links. Cleaned in place."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.hashing import lasting_hash, mix
from tailburn.collector.otlp.kernel.memory import compiled
from tailburn.collector.otlp.kernel.names import HIDDEN, TAINTED, UNLISTED
from tailburn.collector.otlp.kernel.state import OK, state_at
from tailburn.collector.otlp.kernel.table import MISSING, find, hash_for, insert, lasting_hash_of
from tailburn.collector.otlp.kernel.text import blank, clean
from tailburn.collector.otlp.kernel.values import class_of_key, key_value, render
from tailburn.collector.otlp.kernel.wire import BAD, BYTES, extent, is_utf8, skip, tag

_ENTITY_REFS: Final = 3


@compiled
def stray_attribute(state: int, p: int, end: int) -> tuple[int, np.uint64]:
    """Clean a KeyValue in place: OK, BAD or REWRITE, and the lasting hash of what is left."""
    c = state_at(state)
    key, key_end, kind, start, stop = key_value(p, end)
    if stop < 0:
        return stop, np.uint64(0)
    if not is_utf8(key, key_end):
        return BAD, np.uint64(0)
    class_ = class_of_key(state, key, key_end)
    status = render(state, class_, kind, start, stop)
    if status < 0:
        return status, np.uint64(0)
    name_hash = np.uint64(1) if class_ & TAINTED else lasting_hash(key, key_end)
    used = 0 if class_ & HIDDEN else c.scratch_used
    return OK, mix(name_hash, lasting_hash(c.scratch, c.scratch + used))


@compiled
def _entity(state: int, p: int, end: int) -> int:
    """Clean an EntityRef, a message of strings."""
    c = state_at(state)
    while p < end:
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD
        if wire == BYTES:
            a, b = extent(p, end)
            if b < 0 or clean(state, UNLISTED, a, b, c.unlisted_bytes) < 0:
                return BAD
            p = b
        else:
            p = skip(p, end, wire)
            if p < 0:
                return p
    return OK


@compiled
def _clean_resource(state: int, p: int, end: int) -> tuple[int, np.uint64]:
    c = state_at(state)
    total = np.uint64(1)
    while p < end:
        c.at = p
        field, wire, p = tag(p, end)
        if p < 0:
            return BAD, total
        if wire != BYTES:
            p = skip(p, end, wire)
            if p < 0:
                return p, total
            continue
        a, b = extent(p, end)
        if b < 0:
            return BAD, total
        p = b
        if field == 1:
            status, value = stray_attribute(state, a, b)
            total += value
        elif field == _ENTITY_REFS:
            status = _entity(state, a, b)
        else:
            blank(a, b)
            status = OK
        if status < 0:
            return status, total
    return OK, total


@compiled
def resource(state: int, p: int, end: int) -> int:
    """Clean a Resource in place; its code and content hash go to `resource_code` and `_hash`.

    The table holds clean resources only, so one that it knows needs no cleaning.
    """
    c = state_at(state)
    h = hash_for(c.resources, p, end)
    code = find(c.resources, p, end, h)
    if code <= 0:
        status, total = _clean_resource(state, p, end)
        if status < 0:
            return status
        h = hash_for(c.resources, p, end)
        code = find(c.resources, p, end, h)
        if code == MISSING:
            code = insert(c.resources, p, end, h, total)
        if code <= 0:
            c.resource_code = 0
            c.resource_hash = total
            return OK
    c.resource_code = code
    c.resource_hash = lasting_hash_of(c.resources, code)
    return OK
