"""Names of spans, scopes and events to codes of the dictionary.

Ids inside a name (8 and more hex digits, UUIDs) become `*`: SGLang names its spans after the
request and Dynamo its events, and each would take a place in the dictionary.
"""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.hashing import lasting_hash
from tailburn.collector.otlp.kernel.memory import compiled, load8, same, store8
from tailburn.collector.otlp.kernel.names import UNLISTED
from tailburn.collector.otlp.kernel.state import key_of, state_at
from tailburn.collector.otlp.kernel.table import MISSING, find, hash_for, intern, lasting_hash_of
from tailburn.collector.otlp.kernel.text import clean
from tailburn.collector.otlp.kernel.wire import BAD

_SHORTEST_ID: Final = 8
_DATE: Final = 8


@compiled
def hex_digit(byte: int) -> int:
    """Value of a hex digit, or -1."""
    if 48 <= byte <= 57:
        return byte - 48
    lower = byte | 32
    return lower - 87 if 97 <= lower <= 102 else -1


@compiled
def _is_alphanumeric(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= (byte | 32) <= 122


@compiled
def _is_date(p: int, end: int) -> bool:
    """Whether eight digits are a day of the years 1900 to 2099, as versions of models have."""
    if end - p != _DATE:
        return False
    value = 0
    for i in range(_DATE):
        digit = load8(p + i) - 48
        if digit < 0 or digit > 9:
            return False
        value = value * 10 + digit
    month = value // 100 % 100
    return 1900 <= value // 10_000 <= 2099 and 1 <= month <= 12 and 1 <= value % 100 <= 31


@compiled
def _id_end(p: int, end: int) -> int:
    """The end of the id that begins at `p`; `p` when none does."""
    stop = p
    while stop < end and hex_digit(load8(stop)) >= 0:
        stop += 1
    if stop < end and _is_alphanumeric(load8(stop)):
        return p
    if stop - p < _SHORTEST_ID or _is_date(p, stop):
        return p
    groups = stop
    while groups < end and load8(groups) == 45:
        after = groups + 1
        while after < end and hex_digit(load8(after)) >= 0:
            after += 1
        if after - groups < 5 or (after < end and _is_alphanumeric(load8(after))):
            break
        groups = after
    return groups


@compiled
def _without_ids(state: int, p: int, end: int) -> int:
    """Write the name to the scratch text with `*` for each id; its length there."""
    c = state_at(state)
    used = 0
    fresh = True
    while p < end:
        stop = _id_end(p, end) if fresh else p
        if stop > p:
            store8(c.scratch + used, 42)
            p = stop
            fresh = False
        else:
            byte = load8(p)
            store8(c.scratch + used, byte)
            fresh = not _is_alphanumeric(byte)
            p += 1
        used += 1
    return used


@compiled
def name_code(state: int, p: int, end: int, longest: int) -> int:
    """Clean a name in place; its code, with its hash in `name_hash`, or BAD."""
    c = state_at(state)
    h = hash_for(c.dictionary, p, end)
    code = find(c.dictionary, p, end, h) if end > p and end - p <= longest else MISSING
    if code > 0 and key_of(state, code).is_name:
        c.name_hash = lasting_hash_of(c.dictionary, code)
        return code
    stop = clean(state, UNLISTED, p, end, longest)
    if stop < 0:
        return BAD
    used = _without_ids(state, p, stop)
    code = intern(c.dictionary, c.scratch, c.scratch + used)
    if code > 0:
        unchanged = used == end - p and same(c.scratch, p, used)
        key_of(state, code).is_name = np.int32(unchanged)
        c.name_hash = lasting_hash_of(c.dictionary, code)
    else:
        c.name_hash = lasting_hash(c.scratch, c.scratch + used)
    return code
