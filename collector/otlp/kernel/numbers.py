"""Numbers as text, in and out, for compiled code."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.memory import (
    address_of,
    compiled,
    load8,
    parse_float,
    print_float,
    store8,
)

EXACT: Final = 1 << 53
"""Integers up to here are exact as doubles."""

FORM: Final = np.frombuffer(b"%.*g\0", np.uint8)
FORM_ADDRESS: Final = address_of(FORM)

_LONGEST: Final = 64
_POWERS: Final = tuple(10.0**i for i in range(23))


@compiled
def write_int(to: int, value: int) -> int:
    """Write an int64 in decimal (at most 20 bytes); the position behind it."""
    left = np.uint64(value)
    if value < 0:
        store8(to, 45)
        to += 1
        left = np.uint64(0) - left
    digits = 1
    rest = left // np.uint64(10)
    while rest:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits - 1, -1, -1):
        store8(to + i, 48 + np.int64(left % np.uint64(10)))
        left //= np.uint64(10)
    return to + digits


@compiled
def write_float(form: int, to: int, value: float) -> int:
    """Write a finite double in the fewest digits that read back as it (at most 24 bytes)."""
    length = 0
    for digits in range(15, 18):
        length = print_float(to, 32, form, digits, value)
        if parse_float(to) == value:
            break
    return to + length


@compiled
def _is(p: int, end: int, lower: tuple[int, ...]) -> bool:
    if end - p != len(lower):
        return False
    for i in range(len(lower)):  # noqa: SIM110, numba has no all() of a generator
        if (load8(p + i) | 32) != lower[i]:
            return False
    return True


@compiled
def read_number(p: int, end: int) -> float:
    """The number that a text is: decimal, or true or false in any case; nan if it is none."""
    if _is(p, end, (116, 114, 117, 101)):
        return 1.0
    if _is(p, end, (102, 97, 108, 115, 101)):
        return 0.0
    if p == end or end - p > _LONGEST:
        return np.nan
    negative = load8(p) == 45
    if negative or load8(p) == 43:
        p += 1
    mantissa = np.int64(0)
    exponent = 0
    digits = 0
    point = False
    while p < end:
        byte = load8(p)
        if 48 <= byte <= 57:
            digits += 1
            if mantissa < 100_000_000_000_000_000:
                mantissa = mantissa * 10 + (byte - 48)
                exponent -= 1 if point else 0
            elif not point:
                exponent += 1
        elif byte == 46 and not point:
            point = True
        else:
            break
        p += 1
    if digits == 0:
        return np.nan
    if p < end:
        if (load8(p) | 32) != 101 or p + 1 == end:
            return np.nan
        p += 1
        down = load8(p) == 45
        if down or load8(p) == 43:
            p += 1
        power = 0
        if p == end:
            return np.nan
        while p < end:
            byte = load8(p)
            if byte < 48 or byte > 57:
                return np.nan
            power = min(power * 10 + (byte - 48), 9999)
            p += 1
        exponent += -power if down else power
    value = np.float64(mantissa)
    if exponent < -22 or exponent > 22:
        value *= 10.0**exponent
    elif exponent < 0:
        value /= _POWERS[-exponent]
    else:
        value *= _POWERS[exponent]
    return -value if negative else value


@compiled
def _base64_digit(value: int) -> int:
    if value < 26:
        return 65 + value
    if value < 52:
        return 71 + value
    if value < 62:
        return value - 4
    return 43 if value == 62 else 47


@compiled
def write_base64(to: int, p: int, end: int) -> int:
    """Write bytes as base64; the position behind it. Takes 4 bytes for each 3, rounded up."""
    while p < end:
        left = min(end - p, 3)
        bits = load8(p) << 16
        if left > 1:
            bits |= load8(p + 1) << 8
        if left > 2:
            bits |= load8(p + 2)
        for i in range(4):
            store8(to + i, _base64_digit((bits >> (18 - 6 * i)) & 63) if i <= left else 61)
        to += 4
        p += 3
    return to
