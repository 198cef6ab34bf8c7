"""Attributes of spans and events into columns, for compiled code."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.buffers import GROUPS
from tailburn.collector.otlp.kernel.hashing import lasting_hash, mix
from tailburn.collector.otlp.kernel.ids import normal_id_hash
from tailburn.collector.otlp.kernel.memory import (
    as_float,
    compiled,
    copy,
    copy_short,
    load8,
    load32i,
    load64,
    load64i,
    same,
    store8,
    store32,
    store64,
    store_float,
)
from tailburn.collector.otlp.kernel.names import HIDDEN, NUMBERS_BLANKED, SAMPLE_RATE, TAINTED
from tailburn.collector.otlp.kernel.numbers import EXACT, read_number, write_base64, write_int
from tailburn.collector.otlp.kernel.state import FULL, GUESSES, OK, key_of, state_at
from tailburn.collector.otlp.kernel.table import (
    MISSING,
    find,
    hash_for,
    insert,
    intern,
    lasting_hash_of,
    length_of,
    text_address,
)
from tailburn.collector.otlp.kernel.text import clean, clean_bytes
from tailburn.collector.otlp.kernel.values import (
    ARRAY,
    BOOL,
    DOUBLE,
    INT,
    KVLIST,
    RAW,
    STRING,
    any_value,
    class_of_key,
    int_at,
    render,
    usual_key_value,
    zero,
)
from tailburn.collector.otlp.kernel.wire import BAD, BYTES, extent, is_utf8, tag, whole_characters

_GROUP: Final = {name: i for i, name in enumerate(GROUPS)}
WANTED: Final = _GROUP["wanted"]
NUMS: Final = _GROUP["nums"]
STRS: Final = _GROUP["strs"]
TEXT_BYTES: Final = _GROUP["bytes"]

_TRUE: Final = int.from_bytes(b"true", "little")
_FALS: Final = int.from_bytes(b"fals", "little")

_NUMBER: Final = 1
_TEXT: Final = 2
_ID: Final = 4


@compiled
def learn_key(state: int, code: int, class_: int) -> None:
    """Note the class of a key of the dictionary."""
    c = state_at(state)
    key = key_of(state, code)
    key.class_ = class_
    key.length = length_of(c.dictionary, code)
    key.start = text_address(c.dictionary, code)
    key.lasting = lasting_hash_of(c.dictionary, code)


@compiled
def key_code(state: int, p: int, end: int) -> tuple[int, int, np.uint64]:
    """Code (0: don't keep), class and lasting hash of an attribute's name; a class of BAD."""
    c = state_at(state)
    length = end - p
    guess = c.guesses + 4 * (c.guess & (GUESSES - 1))
    c.guess += 1
    code = load32i(guess)
    key = key_of(state, code)
    if code > 0 and key.length == length and same(key.start, p, length):
        return code, key.class_, key.lasting
    h = hash_for(c.dictionary, p, end)
    code = find(c.dictionary, p, end, h) if length > 0 else 0
    class_ = 0
    if code > 0:
        class_ = key_of(state, code).class_
    if class_ == 0:
        if code <= 0 and not is_utf8(p, end):
            return 0, BAD, h
        class_ = class_of_key(state, p, end)
        if code == MISSING and not class_ & TAINTED:
            code = insert(c.dictionary, p, end, h, lasting_hash(p, end))
        if code > 0:
            learn_key(state, code, class_)
    if class_ & TAINTED:
        class_of_key(state, p, end)
        return 0, class_, np.uint64(1)
    if code <= 0:
        return 0, class_, lasting_hash(p, end)
    store32(guess, code)
    return code, class_, lasting_hash_of(c.dictionary, code)


@compiled
def append_number(state: int, key: int, value: float) -> int:
    """An entry of the map of numbers."""
    c = state_at(state)
    n = c.nums
    if n >= c.nums_capacity:
        c.full = NUMS
        return FULL
    store32(c.nums_key + 4 * n, key)
    store_float(c.nums_value + 8 * n, value)
    c.nums = n + 1
    return OK


@compiled
def append_text(state: int, key: int, p: int, end: int) -> int:
    """An entry of the map of strings, cut at the limit."""
    c = state_at(state)
    n = c.strs
    stop = whole_characters(p, end, c.value_bytes)
    if stop < end:
        c.cut_values += 1
    used = c.bytes + (stop - p)
    if n >= c.strs_capacity:
        c.full = STRS
        return FULL
    if used > c.bytes_capacity:
        c.full = TEXT_BYTES
        return FULL
    copy_short(c.bytes_byte + c.bytes, p, stop - p)
    c.bytes = used
    store32(c.strs_key + 4 * n, key)
    store64(c.strs_end + 8 * n, used)
    c.strs = n + 1
    return OK


@compiled
def _forget_number(state: int, first: int, key: int) -> None:
    c = state_at(state)
    for i in range(first, c.nums):
        if load32i(c.nums_key + 4 * i) == key:
            after = c.nums - i - 1
            copy(c.nums_key + 4 * i, c.nums_key + 4 * (i + 1), 4 * after)
            copy(c.nums_value + 8 * i, c.nums_value + 8 * (i + 1), 8 * after)
            c.nums -= 1
            return


@compiled
def _forget_text(state: int, first: int, key: int) -> None:
    c = state_at(state)
    for i in range(first, c.strs):
        if load32i(c.strs_key + 4 * i) == key:
            begin = load64i(c.strs_end + 8 * (i - 1)) if i > 0 else 0
            stop = load64i(c.strs_end + 8 * i)
            copy(c.bytes_byte + begin, c.bytes_byte + stop, c.bytes - stop)
            for j in range(i + 1, c.strs):
                moved = load64i(c.strs_end + 8 * j) - (stop - begin)
                store32(c.strs_key + 4 * (j - 1), load32i(c.strs_key + 4 * j))
                store64(c.strs_end + 8 * (j - 1), moved)
            c.strs -= 1
            c.bytes -= stop - begin
            return


@compiled
def _forget_wanted(state: int, first: int, wanted: int) -> None:
    c = state_at(state)
    for i in range(first, c.wanted):
        if load32i(c.wanted_key + 4 * i) == wanted:
            after = c.wanted - i - 1
            copy(c.wanted_key + 4 * i, c.wanted_key + 4 * (i + 1), 4 * after)
            copy(c.wanted_num + 8 * i, c.wanted_num + 8 * (i + 1), 8 * after)
            copy(c.wanted_code + 4 * i, c.wanted_code + 4 * (i + 1), 4 * after)
            copy(c.wanted_id + 8 * i, c.wanted_id + 8 * (i + 1), 8 * after)
            c.wanted -= 1
            return


@compiled
def forget(state: int, key: int, wanted: int) -> None:
    """Take back what the open span says under a key that comes again: the last one counts."""
    c = state_at(state)
    row = c.spans
    first = row > 0
    _forget_number(state, load32i(c.spans_nums_end + 4 * (row - 1)) if first else 0, key)
    _forget_text(state, load32i(c.spans_strs_end + 4 * (row - 1)) if first else 0, key)
    if wanted >= 0:
        _forget_wanted(state, load32i(c.spans_wanted_end + 4 * (row - 1)) if first else 0, wanted)


@compiled
def _first_string(p: int, end: int) -> tuple[int, int]:
    """Extent of the first string of an ArrayValue that has been read before."""
    while p < end:
        field, wire, p = tag(p, end)
        if wire != BYTES or field != 1:
            return p, p
        a, b = extent(p, end)
        kind, start, stop = any_value(a, b)
        return (start, stop) if kind == STRING else (p, p)
    return p, p


@compiled
def _first_in_list(p: int, end: int) -> tuple[int, int]:
    """Of a text like `["stop"]` or `['stop']` the extent of its first string, else the whole."""
    if end - p < 4 or load8(p) != 91:
        return p, end
    quote = load8(p + 1)
    if quote != 34 and quote != 39:
        return p, end
    stop = p + 2
    while stop < end and load8(stop) != quote:
        if load8(stop) == 92:
            return p, end
        stop += 1
    return (p + 2, stop) if stop < end else (p, end)


@compiled
def append_wanted(state: int, wanted: int, kind: int, number: float, p: int, end: int) -> int:
    """An entry of a wanted attribute: `number` as it is (nan: none) and the text of [p, end)."""
    c = state_at(state)
    n = c.wanted
    if n >= c.wanted_capacity:
        c.full = WANTED
        return FULL
    want = load8(c.wants + wanted)
    code = -1
    id_ = np.uint64(0)
    if want & _NUMBER and kind == STRING:
        number = read_number(p, end)
    if not want & _NUMBER:
        number = np.nan
    if want & _ID and (kind in (STRING, INT)):
        id_ = normal_id_hash(p, end)
    if want & _TEXT and kind != DOUBLE:
        if kind == STRING:
            p, end = _first_in_list(p, end)
        code = intern(c.dictionary, p, end)
    store32(c.wanted_key + 4 * n, wanted)
    store_float(c.wanted_num + 8 * n, number)
    store32(c.wanted_code + 4 * n, code)
    store64(c.wanted_id + 8 * n, id_)
    c.wanted = n + 1
    return OK


@compiled
def _bool_text(state: int, value: int) -> int:
    """Write true or false to the scratch text; its end."""
    c = state_at(state)
    store32(c.scratch, _TRUE if value else _FALS)
    store8(c.scratch + 4, 101)
    return c.scratch + (4 if value else 5)


@compiled
def attribute(state: int, p: int, end: int, in_event: int) -> int:
    """Clean the KeyValue in [p, end) in place and append what is kept of it to the columns.

    Of an event only what is wanted is kept. Returns OK, FULL, BAD or REWRITE.
    """
    c = state_at(state)
    name, name_end, kind, start, stop = usual_key_value(p, end)
    if stop < 0:
        return stop
    code, class_, name_hash = key_code(state, name, name_end)
    if class_ < 0:
        return BAD
    # What follows is the value as text in [a, b), and as number.
    a = start
    b = start
    number = np.nan
    value_hash = np.uint64(0)
    shown = kind
    if kind == STRING:
        b = clean(state, class_, start, stop, c.unlisted_bytes)
        if b < 0:
            return BAD
    elif kind in (INT, DOUBLE, BOOL):
        if class_ & (NUMBERS_BLANKED | TAINTED):
            zero(kind, start, stop)
            shown = STRING
        elif kind == DOUBLE:
            value_hash = load64(start)
            number = as_float(value_hash)
        else:
            value = int_at(start, stop)
            value_hash = np.uint64(value)
            number = np.float64(value)
            a = c.scratch
            if kind == BOOL:
                value_hash = np.uint64(value != 0)
                number = np.float64(value != 0)
                b = _bool_text(state, value)
            elif value > EXACT or value < -EXACT:
                b = write_int(a, value)
            else:
                b = a
    elif kind in (ARRAY, KVLIST):
        status = render(state, class_, kind, start, stop)
        if status < 0:
            return status
        a = c.scratch
        b = a if class_ & HIDDEN else a + c.scratch_used
    elif kind == RAW:
        b = clean_bytes(state, class_, start, stop, c.unlisted_bytes)
        raw_end = min(b, start + c.value_bytes // 4 * 3)
        a = c.base64
        b = write_base64(a, start, raw_end)
    else:
        shown = STRING
    if class_ & HIDDEN and shown not in (INT, DOUBLE, BOOL):
        shown = STRING

    key = key_of(state, code)
    wanted = np.int64(key.event if in_event else key.span) - 1
    if not in_event:
        if shown == STRING or shown >= ARRAY:
            value_hash = lasting_hash(a, b)
        c.attribute_sum += mix(name_hash + np.uint64(shown), value_hash)
        if class_ & SAMPLE_RATE:
            c.sample_rate = read_number(a, b) if kind == STRING else number
        if code == 0 or c.attributes >= c.max_attributes:
            c.dropped_attributes += 1
            return OK
        c.attributes += 1
        if key.stamp == c.stamp:
            forget(state, code, wanted)
        key.stamp = c.stamp
        if shown == DOUBLE or (shown == INT and a == b):
            status = append_number(state, code, number)
        else:
            status = append_text(state, code, a, b)
        if status < 0:
            return status
    if wanted < 0 or c.attributes > c.max_attributes:
        return OK
    if in_event:
        c.attributes += 1
    if shown == INT and a == b:
        b = write_int(a, np.int64(value_hash))
    elif shown == ARRAY:
        a, b = _first_string(start, stop)
        b = clean(state, class_, a, b, c.unlisted_bytes)
    return append_wanted(state, wanted, shown, number, a, b)
