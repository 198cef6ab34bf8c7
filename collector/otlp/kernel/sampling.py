"""The sampling weight that a trace state tells, for compiled code."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.memory import compiled, load8
from tailburn.collector.otlp.kernel.namecodes import hex_digit

_DIGITS: Final = 14
_ALL: Final = 1 << 56


@compiled
def _three(p: int, first: int, second: int, third: int) -> bool:
    return load8(p) == first and load8(p + 1) == second and load8(p + 2) == third


@compiled
def _member(p: int, end: int, first: int, second: int, then: int, between: int) -> tuple[int, int]:
    """Extent of the value behind the two letters and `then` at `p` or behind a `between`."""
    fresh = True
    while p < end:
        if fresh and end - p >= 3 and _three(p, first, second, then):
            stop = p + 3
            while stop < end and load8(stop) != between:
                stop += 1
            return p + 3, stop
        byte = load8(p)
        fresh = byte == between or (fresh and byte == 32)
        p += 1
    return end, end


@compiled
def weight_of(p: int, end: int) -> float:
    """How many spans one with this W3C trace state stands for: 1 unless `ot=th:` tells.

    The threshold is up to 14 hex digits, trailing zeros left out: of 2^56 equally likely
    random values the sampler kept those at or above it.
    """
    p, end = _member(p, end, 111, 116, 61, 44)  # ot= , between members a comma
    p, end = _member(p, end, 116, 104, 58, 59)  # th: , between fields a semicolon
    threshold = np.int64(0)
    digits = 0
    while p < end and digits < _DIGITS:
        digit = hex_digit(load8(p))
        if digit < 0:
            break
        threshold = (threshold << 4) | digit
        digits += 1
        p += 1
    threshold <<= 4 * (_DIGITS - digits)
    return np.float64(_ALL) / np.float64(_ALL - threshold)
