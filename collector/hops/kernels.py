"""The compiled half of recognition: keys of spans, and numbers out of attributes and events."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tailburn.collector.hops.plan import BY_VALUE, HTTP_STATUS

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]

UNKNOWN, OK, ERROR, CANCELLED = 0, 1, 2, 3
CLIENT_CLOSED_REQUEST = 499


@njit(nogil=True, cache=True, error_model="numpy")
def _mix(value: int, seed: int) -> np.uint64:
    x = np.uint64(value) ^ np.uint64(seed)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True, error_model="numpy")
def keys_of(
    name: I32,
    scope: I32,
    kind: I8,
    status: I8,
    resource: I32,
    tenant: I32,
    wanted_offset: I32,
    wanted_key: I32,
    wanted_code: I32,
    decisive: I8,
    event_offset: I32,
    event_name: I32,
    event_of_code: I32,
    event_decisive: I8,
    seed: int,
    key: U64,
) -> None:
    """Fill `key`: the same for spans that no rule can tell apart, whatever their order of
    attributes. The seed keeps senders from choosing spans that share a key."""
    codes = len(event_of_code)
    for i in range(len(name)):
        h = _mix((np.int64(name[i]) << 32) | np.int64(scope[i]), seed)
        place = (np.int64(resource[i]) << 32) | np.int64(tenant[i])
        h = _mix(np.int64(h) ^ place, seed ^ 0x5851F42D4C957F2D)
        h = _mix(np.int64(h) ^ ((np.int64(kind[i]) << 8) | np.int64(status[i])), seed)
        for j in range(wanted_offset[i], wanted_offset[i + 1]):
            k = wanted_key[j]
            if decisive[k]:
                code = max(wanted_code[j], 0) if decisive[k] == BY_VALUE else 0
                h += _mix(((np.int64(k) + 1) << 32) | np.int64(code), seed)
        seen = np.int64(0)
        for j in range(event_offset[i], event_offset[i + 1]):
            c = event_name[j]
            e = event_of_code[c] if c < codes else -1
            if e >= 0 and event_decisive[e]:
                seen |= np.int64(1) << min(e, 62)
        if seen:
            h += _mix(seen, seed ^ 0x2545F4914F6CDD1D)
        key[i] = h if h != 0 else np.uint64(1)


@njit(nogil=True, cache=True, error_model="numpy")
def _slot(key: np.uint64, slots: U64) -> int:
    """Where the key is, or the free place where it belongs."""
    size = len(slots)
    j = np.int64(key) & (size - 1)
    while slots[j] != 0 and slots[j] != key:
        j = (j + 1) & (size - 1)
    return int(j)


@njit(nogil=True, cache=True, error_model="numpy")
def find_known(key: U64, slots: U64, entry_at: I32, entry: I32, missing: I32) -> int:
    """Fill `entry` from the table of known keys; the rows of unknown ones go to `missing`."""
    count = 0
    for i in range(len(key)):
        j = _slot(key[i], slots)
        if slots[j] == 0:
            entry[i] = -1
            missing[count] = i
            count += 1
        else:
            entry[i] = entry_at[j]
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def remember(key: np.uint64, number: int, slots: U64, entry_at: I32) -> None:
    """Put a key into the table, which has room."""
    j = _slot(key, slots)
    slots[j] = key
    entry_at[j] = number


@njit(nogil=True, cache=True, error_model="numpy")
def _place(
    numbers: I64, rank: I8, field: int, r: int, i: int, value: float, origin: int, most: I64
) -> None:
    if not (0.0 <= value < 9.2e18):
        return
    ns = np.int64(np.rint(value)) + origin
    if 0 <= ns <= most[field]:
        numbers[field, i] = ns
        rank[field] = r


@njit(nogil=True, cache=True, error_model="numpy")
def _origin(base: int, start_ns: int, end_ns: int) -> int:
    return start_ns * (base == 1) + end_ns * (base == 2)


@njit(nogil=True, cache=True, error_model="numpy")
def extract(
    class_id: I32,
    start_ns: I64,
    end_ns: I64,
    wanted_offset: I32,
    wanted_key: I32,
    wanted_num: F64,
    wanted_id: U64,
    inputs: int,
    first: I32,
    field: I8,
    rank_of: I8,
    factor: F64,
    base: I8,
    has_defaults: I8,
    defaults: I64,
    default_rank: I8,
    most: I64,
    numbers: I64,
    ids: U64,
) -> None:
    """Fill `numbers` (NUMBERS, n), which holds what stands for absent, and `ids` (IDS, n),
    which holds zeros, from constants and attributes."""
    fields = numbers.shape[0]
    rank = np.empty(fields + ids.shape[0], np.int8)
    for i in range(len(class_id)):
        c = np.int64(class_id[i])
        fresh = True
        if has_defaults[c]:
            for f in range(fields):
                numbers[f, i] = defaults[c, f]
        for j in range(wanted_offset[i], wanted_offset[i + 1]):
            slot = c * inputs + wanted_key[j]
            for o in range(first[slot], first[slot + 1]):
                if fresh:
                    rank[:fields] = default_rank[c]
                    rank[fields:] = 127
                    fresh = False
                into = np.int64(field[o])
                if rank_of[o] >= rank[into]:
                    continue
                if into < fields:
                    origin = _origin(base[o], start_ns[i], end_ns[i])
                    value = wanted_num[j] * factor[o]
                    _place(numbers, rank, into, rank_of[o], i, value, origin, most)
                elif wanted_id[j] != 0:
                    ids[into - fields, i] = wanted_id[j]
                    rank[into] = rank_of[o]


@njit(nogil=True, cache=True, error_model="numpy")
def extract_from_events(
    class_id: I32,
    reads_events: I8,
    event_offset: I32,
    event_name: I32,
    event_ns: I64,
    event_of_code: I32,
    inputs: int,
    first: I32,
    field: I8,
    rank_of: I8,
    until: I32,
    is_flag: I8,
    is_last: I8,
    absent: I64,
    numbers: I64,
) -> None:
    """Fill what the attributes left open in `numbers` from the times of events.

    A first token is the earliest event of its name, a last token the latest.
    """
    codes = len(event_of_code)
    earliest = np.zeros(inputs, np.int64)
    latest = np.zeros(inputs, np.int64)
    rank = np.empty(numbers.shape[0], np.int8)
    for i in range(len(class_id)):
        c = np.int64(class_id[i])
        if not reads_events[c] or event_offset[i] == event_offset[i + 1]:
            continue
        earliest[:] = 0
        latest[:] = 0
        rank[:] = 127
        for j in range(event_offset[i], event_offset[i + 1]):
            code = event_name[j]
            e = event_of_code[code] if code < codes else -1
            if e >= 0 and event_ns[j] > 0:
                if earliest[e] == 0 or event_ns[j] < earliest[e]:
                    earliest[e] = event_ns[j]
                latest[e] = max(latest[e], event_ns[j])
        for e in range(inputs):
            if earliest[e] == 0:
                continue
            for o in range(first[c * inputs + e], first[c * inputs + e + 1]):
                f = np.int64(field[o])
                if numbers[f, i] != absent[f] and rank[f] == 127 or rank_of[o] >= rank[f]:
                    continue
                if until[o] >= 0 and earliest[until[o]] < earliest[e]:
                    continue
                rank[f] = rank_of[o]
                if is_flag[f]:
                    numbers[f, i] = 1
                elif until[o] < 0:
                    numbers[f, i] = latest[e] if is_last[f] else earliest[e]
                else:
                    numbers[f, i] = earliest[until[o]] - earliest[e]


@njit(nogil=True, cache=True, error_model="numpy")
def judge(entry: I32, words: I8, asks_http: I8, numbers: I64, outcome: I8) -> None:
    """Fill `outcome`. `words` (entries, 3) is what was said before, between and after HTTP's
    two words, `asks_http` (entries, 2) whether those are asked for errors and for success."""
    for i in range(len(entry)):
        e = entry[i]
        status = numbers[HTTP_STATUS, i]
        if words[e, 0]:
            outcome[i] = words[e, 0]
        elif asks_http[e, 0] and status >= 400:
            outcome[i] = CANCELLED if status == CLIENT_CLOSED_REQUEST else ERROR
        elif words[e, 1]:
            outcome[i] = words[e, 1]
        elif asks_http[e, 1] and 200 <= status < 400:
            outcome[i] = OK
        else:
            outcome[i] = words[e, 2]
