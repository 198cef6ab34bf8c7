"""Ids of requests, by which hops name the same request in different dress."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.otlp.hashing import lasting_hash
from tailburn.collector.otlp.memory import REVISION_FIELD, address_of, compiled, load8
from tailburn.collector.otlp.table import bytes_in

_SHORTEST: Final = 8
_PREFIXES: Final = (
    (99, 104, 97, 116, 99, 109, 112, 108, 45),  # chatcmpl-
    (99, 109, 112, 108, 45, 0, 0, 0, 0),  # cmpl-
    (114, 101, 115, 112, 95, 0, 0, 0, 0),  # resp_
)


@compiled
def _after_prefix(p: int, end: int) -> int:
    for prefix in _PREFIXES:
        length = 0
        while length < 9 and prefix[length] != 0:
            length += 1
        if end - p < length:
            continue
        equal = True
        for i in range(length):
            if load8(p + i) != prefix[i]:
                equal = False
                break
        if equal:
            return p + length
    return p


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
    """See `id_hash`; 0 for an empty id."""
    if p == end:
        return np.uint64(0)
    p = _after_prefix(p, end)
    return lasting_hash(p, _before_suffix(p, end))


_MARK: Final = np.zeros(1, [REVISION_FIELD])


@compiled
def _id_hash(mark: NDArray[np.void], p: int, length: int) -> np.uint64:
    return normal_id_hash(p, p + length)


def id_hash(text: str) -> int:
    """64 bits of an id of a request, the same in every process; 0 for "".

    Without one prefix `chatcmpl-`, `cmpl-` or `resp_`, and without one suffix of `-` or `_`
    and one to three digits if at least eight characters stay: engines number the prompts
    of a request so.
    """
    data = text.encode()
    array = bytes_in(data)
    return int(_id_hash(_MARK, address_of(array), len(data)))
