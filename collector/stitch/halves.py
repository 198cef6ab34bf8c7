"""Engines that share a request: one prefills it, another decodes it.

The prefilling engine is asked for one token, which is not the user's: that comes from the
decoding one, whose queue and prefill are the wait for the KV to arrive and a first step.
"""

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.stitch.compiling import inlined
from tailburn.collector.stitch.layout import MAX_OUTPUT, OUTPUT, ROLE
from tailburn.collector.stitch.places import ENGINE
from tailburn.collector.stitch.tree import CALL, SERVER
from tailburn.engine.compiled import Int

W = NDArray[np.int64]
N = NDArray[np.int32]


@inlined
def prefills(narrow: N, hop: W, k: Int) -> bool:
    """Whether `k` is an engine's span of a prefill, in a request that is split."""
    return bool(
        narrow[k, ROLE] == SERVER
        and hop[k] == ENGINE
        and narrow[k, MAX_OUTPUT] == 1
        and narrow[k, OUTPUT] <= 1
    )


@inlined
def decodes(narrow: N, hop: W, k: Int) -> bool:
    """Whether `k` is an engine's span of a decode, in a request that is split."""
    return bool(narrow[k, ROLE] == SERVER and hop[k] == ENGINE and narrow[k, MAX_OUTPUT] > 1)


@inlined
def _asked_for_more(narrow: N, hop: W, k: Int) -> bool:
    """Whether a caller or a hop before the engine says that there were several tokens."""
    outside = narrow[k, ROLE] == CALL or (narrow[k, ROLE] == SERVER and hop[k] < ENGINE)
    return bool(outside and max(narrow[k, MAX_OUTPUT], narrow[k, OUTPUT]) > 1)


@inlined
def is_split(narrow: N, member: W, count: Int, hop: W, lost: NDArray[np.int8]) -> bool:
    """Whether one engine was asked for a single token, where the request was for more."""
    first, rest = False, False
    for i in range(count):
        k = member[i]
        if not lost[k]:
            first = first or prefills(narrow, hop, k)
            rest = rest or decodes(narrow, hop, k) or _asked_for_more(narrow, hop, k)
    return first and rest
