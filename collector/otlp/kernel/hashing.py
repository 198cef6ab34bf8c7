"""Hashes of byte strings: seeded ones for tables, a fixed one for what must last."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.memory import compiled, fold, load8, load32, load64

_A: Final = np.uint64(0x9E3779B97F4A7C15)
_B: Final = np.uint64(0xD6E8FEB86659FD93)
_C: Final = np.uint64(0xA0761D6478BD642F)
_D: Final = np.uint64(0xE7037ED1A0B428DB)  # keeps factors away from 0 and 1, where `fold` is weak


@compiled
def hash_bytes(p: int, end: int, seed_a: np.uint64, seed_b: np.uint64) -> np.uint64:
    """64 bits of the bytes; with secret seeds nobody outside can choose collisions."""
    left = end - p
    h = seed_a ^ np.uint64(left)
    while left > 16:
        h = fold(load64(p) ^ seed_b, load64(p + 8) ^ h)
        p += 16
        left -= 16
    x = np.uint64(0)
    y = np.uint64(0)
    if left >= 8:
        x = load64(p)
        y = load64(p + left - 8)
    elif left >= 4:
        x = load32(p)
        y = load32(p + left - 4)
    elif left > 0:
        x = np.uint64((load8(p) << 16) | (load8(p + left // 2) << 8) | load8(p + left - 1))
    return fold(fold(x ^ seed_b, y ^ h) ^ _C, h ^ _D)


@compiled
def lasting_hash(p: int, end: int) -> np.uint64:
    """The same in every process; never 0."""
    h = hash_bytes(p, end, _A, _B)
    return h if h != np.uint64(0) else np.uint64(1)


@compiled
def mix(a: np.uint64, b: np.uint64) -> np.uint64:
    """One hash of two, the order counts; the same in every process."""
    return fold(fold(a ^ _A, b ^ _B) ^ _C, (a + (b << np.uint64(1))) ^ _D)
