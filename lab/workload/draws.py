"""Random draws by counter: number i of a key is the same whoever asks, and in any order.

A key is made from (seed, block of time, client), so that a client's arrivals do not
change when another client is added or removed, and any minute can be made without the
ones before it. The mixer is SplitMix64's (Steele, Lea, Flood 2014).
"""

import math

import numpy as np

from tailburn.lab.compiled import compiled, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)
_S11 = np.uint64(11)
_ONE = np.uint64(1)
_TO_UNIT = 2.0**-53


@inlined
def mix(z: np.uint64) -> np.uint64:
    """64 bits well mixed: neighbouring numbers give unrelated ones."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@inlined
def key_of(key: np.uint64, part: np.uint64) -> np.uint64:
    """The key of a part of what `key` names."""
    return mix((key + GOLDEN) ^ mix(part + GOLDEN))


@inlined
def unit(key: np.uint64, i: np.uint64) -> float:
    """Draw number i of the key, uniform in (0, 1), neither end included."""
    return (float(mix(key + (i + _ONE) * GOLDEN) >> _S11) + 0.5) * _TO_UNIT


@inlined
def name_of(key: np.uint64, i: np.uint64) -> np.int64:
    """A positive 62-bit id, never 0."""
    return np.int64(mix(key ^ mix(i + GOLDEN)) >> np.uint64(2)) | np.int64(1)


@compiled
def _normal(key: np.uint64, i: np.uint64) -> tuple[float, float]:
    radius = math.sqrt(-2.0 * math.log(unit(key, i)))
    angle = 2.0 * math.pi * unit(key, i + _ONE)
    return radius * math.cos(angle), radius * math.sin(angle)


@compiled
def _gamma_above_one(key: np.uint64, i: np.uint64, shape: float) -> tuple[float, np.uint64]:
    """Marsaglia and Tsang 2000, for shapes of at least 1; and the next free draw."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, _ = _normal(key, i)
        u = unit(key, i + np.uint64(2))
        i += np.uint64(3)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v, i


@compiled
def _gamma_below_one(key: np.uint64, i: np.uint64, shape: float) -> tuple[float, np.uint64]:
    """Ahrens and Dieter 1974 (GS), for shapes under 1; and the next free draw."""
    b = 1.0 + shape / math.e
    while True:
        p = b * unit(key, i)
        u = unit(key, i + _ONE)
        i += np.uint64(2)
        if p <= 1.0:
            x = math.exp(math.log(p) / shape)
            if u <= math.exp(-x):
                return x, i
        else:
            x = -math.log((b - p) / shape)
            if math.log(u) <= (shape - 1.0) * math.log(x):
                return x, i


@compiled
def gamma(key: np.uint64, i: np.uint64, shape: float) -> tuple[float, np.uint64]:
    """A Gamma(shape, scale 1) draw from number i on; and the next free draw."""
    if shape == 1.0:
        return -math.log(unit(key, i)), i + _ONE
    if shape > 1.0:
        return _gamma_above_one(key, i, shape)
    return _gamma_below_one(key, i, shape)


@compiled
def interval(key: np.uint64, i: np.uint64, shape: float, weibull: bool) -> tuple[float, np.uint64]:
    """Time between two arrivals, of mean 1: Gamma or Weibull of that shape."""
    if weibull:
        x = math.exp(math.log(-math.log(unit(key, i))) / shape - math.lgamma(1.0 + 1.0 / shape))
        return x, i + _ONE
    x, after = gamma(key, i, shape)
    return x / shape, after


@compiled
def first_wait(
    key: np.uint64, i: np.uint64, shape: float, weibull: bool
) -> tuple[float, np.uint64]:
    """Wait for the next arrival when one comes to look at any moment, mean interval 1.

    A share of an interval picked with odds by its length: starting every window
    so keeps the rate exact, where starting with a plain interval would not.
    """
    share = unit(key, i)
    if weibull:
        y, after = gamma(key, i + _ONE, 1.0 + 1.0 / shape)
        return share * math.exp(math.log(y) / shape - math.lgamma(1.0 + 1.0 / shape)), after
    y, after = gamma(key, i + _ONE, shape + 1.0)
    return share * y / shape, after


@compiled
def units(key: np.uint64, first: int, count: int) -> np.ndarray:
    """Draws first .. first + count - 1 of the key, uniform in (0, 1)."""
    out = np.empty(count)
    for i in range(count):
        out[i] = unit(key, np.uint64(first + i))
    return out


@compiled
def intervals(key: np.uint64, count: int, shape: float, weibull: bool) -> np.ndarray:
    """`count` intervals of mean 1, one after another."""
    out = np.empty(count)
    i = np.uint64(0)
    for n in range(count):
        out[n], i = interval(key, i, shape, weibull)
    return out


_SHAPES = np.geomspace(0.085, 26.0, 2000)
_LOG_CVS = np.array(
    [math.log(math.expm1(math.lgamma(1 + 2 / k) - 2 * math.lgamma(1 + 1 / k))) / 2 for k in _SHAPES]
)


def weibull_shape(cv: "np.ndarray | float") -> np.ndarray:
    """The Weibull shape whose intervals have this coefficient of variation (.05 to 900)."""
    return np.exp(np.interp(np.log(cv), _LOG_CVS[::-1], np.log(_SHAPES[::-1])))


def gamma_shape(cv: "np.ndarray | float") -> np.ndarray:
    """The Gamma shape whose intervals have this coefficient of variation."""
    return 1.0 / np.square(np.asarray(cv, float))
