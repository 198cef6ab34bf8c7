"""A replica's own random stream: drawn in the order of its steps, whatever others do."""

from typing import Any

import numpy as np

from tailburn.lab.compiled import lean_inlined
from tailburn.lab.world import engine_layout as c

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


@lean_inlined
def bits(e: Any, r: Any) -> Any:
    """64 random bits of the replica's own stream (SplitMix64)."""
    state = np.uint64(e.rep[r, c.RANDOM]) + _STRIDE
    e.rep[r, c.RANDOM] = np.int64(state)
    z = (state ^ (state >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@lean_inlined
def unit(e: Any, r: Any) -> Any:
    """A uniform draw from [0, 1)."""
    return float(bits(e, r) >> np.uint64(11)) * _UNIT


@lean_inlined
def normal(e: Any, r: Any) -> Any:
    """A draw of mean 0 and variance 1, near normal: the sum of four 16-bit uniforms."""
    z = bits(e, r)
    low = np.uint64(0xFFFF)
    total = (z & low) + ((z >> np.uint64(16)) & low) + ((z >> np.uint64(32)) & low)
    total += z >> np.uint64(48)
    return (float(total) / 65536.0 - 2.0) * 1.7320508075688772
