"""Random draws of an attempt, by counter: draw i of a key is the same in any order of events.

So two runs that differ in a knob differ in what the knob does and in nothing else. The
mixer is SplitMix64's (Steele, Lea, Flood 2014).
"""

import math
from typing import Any

import numpy as np

from tailburn.lab.compiled import lean_inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_S2 = np.uint64(2)
_TO_UNIT = 2.0**-53


@lean_inlined
def mixed(z: Any) -> Any:
    """64 bits well mixed, as uint64."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@lean_inlined
def key_of(seed: Any, part: Any) -> Any:
    """The key (a positive int64) of a part of what `seed` names."""
    mixed_part = mixed(np.uint64(part) + _GOLDEN)
    return np.int64(mixed((np.uint64(seed) + _GOLDEN) ^ mixed_part) >> _S2)


@lean_inlined
def unit(key: Any, i: Any) -> Any:
    """Draw i of the key: uniform in (0, 1), neither end included."""
    z = mixed(np.uint64(key) + np.uint64(i + 1) * _GOLDEN)
    return (np.float64(z >> _S11) + 0.5) * _TO_UNIT


@lean_inlined
def exponential(key: Any, i: Any) -> Any:
    """Draw i of the key, of mean 1."""
    return -math.log(unit(key, i))


@lean_inlined
def normal(key: Any, i: Any) -> Any:
    """Draw i (and 1,000 + i) of the key, standard normal."""
    radius = math.sqrt(-2.0 * math.log(unit(key, i)))
    return radius * math.cos(2.0 * math.pi * unit(key, i + 1000))


# What each draw of an attempt is for.
D_CONNECT = 0
D_REQUEST_EDGE = 2
D_WORK = 3
D_STALL = 4
D_AUTH = 5
D_GUARDRAIL = 6
D_RETRIEVAL = 7
D_RETRIEVAL_EDGE = 8
D_ROUTER_EDGE = 10
D_ENGINE_EDGE = 11
D_TOKENIZE = 12
D_PATIENCE = 13
D_LEAVES = 14
D_BACKOFF = 15
D_FIRST = 16
"""Three edges of the first byte's way back, from here on."""
D_LAST = 20
"""Three edges of the last byte's way back, from here on."""
D_ABORT = 24
D_ABORT_LOST = 28
D_PICK = 30
D_DETOKENIZE = 31
D_REFUSE = 32
D_GUARDRAIL_EDGE = 36
D_LOSS = 500
"""Added to an edge's draw: whether its message is lost."""
