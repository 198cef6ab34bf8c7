"""Ids of requests, by which hops name the same request in different dress."""

from typing import Final

import numpy as np

from tailburn.collector.otlp.kernel.hashing import lasting_hash
from tailburn.collector.otlp.kernel.memory import compiled, load8

_SHORTEST: Final = 8
_PREFIXES: Final = (
    (99, 104, 97, 116, 99, 109, 112, 108, 45),  # chatcmpl-
    (99, 109, 112, 108, 45, 0, 0, 0, 0),  # cmpl-
    (114, 101, 115, 112, 95, 0, 0, 0, 0),  # resp_
)
_LENGTHS: Final = (9, 5, 5)
_NUMBERED_FROM: Final = 1
"""From this prefix on, a number behind the id tells one prompt of the request from another."""


@compiled
def _prefix(p: int, end: int) -> int:
    """Which of the prefixes the id begins with, or -1."""
    for which in range(len(_PREFIXES)):
        prefix = _PREFIXES[which]
        length = _LENGTHS[which]
        if end - p < length:
            continue
        equal = True
        for i in range(length):
            if load8(p + i) != prefix[i]:
                equal = False
                break
        if equal:
            return which
    return -1


@compiled
def _before_suffix(p: int, end: int) -> int:
    stop = end
    while stop > p and end - stop < 4 and 48 <= load8(stop - 1) <= 57:
        stop -= 1
    digits = end - stop
    if 1 <= digits <= 3 and stop - 1 - p >= _SHORTEST and load8(stop - 1) in (45, 95):
        return stop - 1
    return end


@compiled
def normal_id_hash(p: int, end: int) -> np.uint64:
    """See `ids.id_hash`; 0 for an empty id."""
    if p == end:
        return np.uint64(0)
    which = _prefix(p, end)
    if which >= 0:
        p += _LENGTHS[which]
    if which >= _NUMBERED_FROM:
        end = _before_suffix(p, end)
    return lasting_hash(p, end)
