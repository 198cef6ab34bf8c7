"""A bounded table of byte strings for compiled code: bytes to a dense code and back.

Open addressing with a seeded hash and a bounded probe, so that a sender who chooses
keys can fill the table but not slow it down. Nothing is ever removed.
"""

import secrets
from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.hashing import hash_bytes, lasting_hash
from tailburn.collector.otlp.kernel.memory import (
    address_of,
    compiled,
    copy,
    load64,
    load64i,
    reference,
    same,
    store64,
)

MISSING: Final = -1

_MAX_PROBES: Final = 64
_SLOT: Final = 16  # hash, code
_ENTRY: Final = 24  # start in the arena, length, lasting hash

_RECORD: Final = np.dtype(
    [
        ("slots", np.int64),
        ("mask", np.int64),
        ("entries", np.int64),
        ("arena", np.int64),
        ("arena_bytes", np.int64),
        ("arena_used", np.int64),
        ("count", np.int64),
        ("capacity", np.int64),
        ("longest", np.int64),
        ("overflowed", np.int64),
        ("seed_a", np.uint64),
        ("seed_b", np.uint64),
    ],
    align=True,
)


table_at = reference(_RECORD)


@compiled
def hash_for(table: int, p: int, end: int) -> np.uint64:
    """The table's own hash of the bytes; never 0."""
    t = table_at(table)
    h = hash_bytes(p, end, t.seed_a, t.seed_b)
    return h if h != np.uint64(0) else np.uint64(1)


@compiled
def entry_is(table: int, code: int, p: int, length: int) -> bool:
    """Whether `code` stands for these bytes."""
    t = table_at(table)
    entry = t.entries + code * _ENTRY
    return load64i(entry + 8) == length and same(t.arena + load64i(entry), p, length)


@compiled
def lasting_hash_of(table: int, code: int) -> np.uint64:
    """The hash that was given with the entry."""
    t = table_at(table)
    return load64(t.entries + code * _ENTRY + 16)


@compiled
def length_of(table: int, code: int) -> int:
    """How many bytes a code stands for."""
    t = table_at(table)
    return load64i(t.entries + code * _ENTRY + 8)


@compiled
def text_address(table: int, code: int) -> int:
    """Where the bytes of a code stand; they never move."""
    t = table_at(table)
    return t.arena + load64i(t.entries + code * _ENTRY)


@compiled
def find(table: int, p: int, end: int, h: np.uint64) -> int:
    """The code of the bytes whose `hash_for` is `h`, or MISSING."""
    t = table_at(table)
    i = np.int64(h & np.uint64(0x7FFFFFFFFFFFFFFF)) & t.mask
    for _ in range(_MAX_PROBES):
        slot = t.slots + i * _SLOT
        found = load64(slot)
        if found == h:
            code = load64i(slot + 8)
            if entry_is(table, code, p, end - p):
                return code
        elif found == np.uint64(0):
            return MISSING
        i = (i + 1) & t.mask
    return MISSING


@compiled
def insert(table: int, p: int, end: int, h: np.uint64, lasting: np.uint64) -> int:
    """A new code for bytes that `find` misses; 0 when there is no room, which is counted."""
    t = table_at(table)
    length = end - p
    full = t.count >= t.capacity or length > t.longest
    if full or t.arena_used + length > t.arena_bytes:
        t.overflowed += 1
        return 0
    i = np.int64(h & np.uint64(0x7FFFFFFFFFFFFFFF)) & t.mask
    for _ in range(_MAX_PROBES):
        slot = t.slots + i * _SLOT
        if load64(slot) == np.uint64(0):
            code = t.count
            entry = t.entries + code * _ENTRY
            copy(t.arena + t.arena_used, p, length)
            store64(entry, t.arena_used)
            store64(entry + 8, length)
            store64(entry + 16, lasting)
            store64(slot, h)
            store64(slot + 8, code)
            t.arena_used += length
            t.count += 1
            return code
        i = (i + 1) & t.mask
    t.overflowed += 1
    return 0


@compiled
def intern(table: int, p: int, end: int) -> int:
    """The code of the bytes, new or known; 0 when there is no room. The caller checked UTF-8."""
    if p == end:
        return 0
    h = hash_for(table, p, end)
    code = find(table, p, end, h)
    if code == MISSING:
        code = insert(table, p, end, h, lasting_hash(p, end))
    return code


class Table:
    """The memory of a table. Code 0 is the empty string and stands for what found no room."""

    def __init__(self, capacity: int, arena_bytes: int, longest: int) -> None:
        slots = 1 << (2 * capacity).bit_length()
        self._slots = np.zeros((slots, 2), np.uint64)
        self.entries = np.zeros((capacity, 3), np.int64)
        self._arena = np.empty(arena_bytes, np.uint8)
        self.record = np.zeros(1, _RECORD)
        self.record["slots"] = address_of(self._slots)
        self.record["mask"] = slots - 1
        self.record["entries"] = address_of(self.entries)
        self.record["arena"] = address_of(self._arena)
        self.record["arena_bytes"] = arena_bytes
        self.record["capacity"] = capacity
        self.record["longest"] = longest
        self.record["count"] = 1
        self.record["seed_a"] = secrets.randbits(64)
        self.record["seed_b"] = secrets.randbits(64)

    def __len__(self) -> int:
        return int(self.record["count"][0])

    @property
    def overflowed(self) -> int:
        """How often a string found no room."""
        return int(self.record["overflowed"][0])

    def bytes_of(self, code: int) -> bytes:
        """The bytes of a code. Raises IndexError for a code never given."""
        if not 0 <= code < len(self):
            raise IndexError(f"code {code} of {len(self)}")
        start, length = self.entries[code, :2].tolist()
        return self._arena[start : start + length].tobytes()
