"""Ids and chances drawn from numbers: the same run gives the same ids, in any order of work."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
_GOLDEN, _A, _B = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


def mix(number: Any) -> U64:
    """splitmix64: a number spread over 64 bits."""
    with np.errstate(over="ignore"):
        x = (np.asarray(number).astype(np.uint64) + _GOLDEN).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * _A
        x = (x ^ (x >> np.uint64(27))) * _B
        return x ^ (x >> np.uint64(31))


def label(name: str) -> np.uint64:
    """A name as a number to draw by."""
    return np.uint64(zlib.crc32(name.encode()) << 17)


def drawn(base: U64, name: str) -> U64:
    """Ids for what `name` says, one for each base; never 0, as OTLP asks."""
    ids = mix(base ^ label(name))
    return np.where(ids == 0, np.uint64(1), ids)


def chance(base: U64, name: str) -> NDArray[np.float64]:
    """A number in [0, 1) for each base."""
    return (drawn(base, name) >> np.uint64(11)).astype(np.float64) / float(1 << 53)
