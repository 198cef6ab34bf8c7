"""How rates move: the week with its Mondays, and slow noise around it."""

from dataclasses import dataclass

import numpy as np

from tailburn.lab.compiled import compiled
from tailburn.lab.workload.draws import key_of, unit

WEEK_S = 7 * 86_400
NOISE = np.uint64(4)


@dataclass(frozen=True)
class WeekShape:
    """Relative rate over a week that begins on Monday, 00:00 UTC, mean 1.

    `factor[i]` holds in the middle of the i-th of equal parts of the week; between
    the middles it is linear, and Sunday's end leads into Monday's start.
    """

    factor: np.ndarray

    @classmethod
    def of(cls, hours: "tuple[float, ...]", days: "tuple[float, ...]") -> "WeekShape":
        """From 24 hourly factors of a day and 7 factors of its days, Monday first."""
        raw = np.outer(days, hours).ravel()
        return cls(raw / raw.mean())

    @classmethod
    def flat(cls) -> "WeekShape":
        """The same rate at all times."""
        return cls(np.ones(1))

    def at(self, week_s: "np.ndarray | float") -> np.ndarray:
        """Relative rate so many seconds after a Monday's 00:00; any week."""
        parts = len(self.factor)
        middles = (np.arange(parts) + 0.5) * (WEEK_S / parts)
        return np.interp(week_s, middles, self.factor, period=WEEK_S)


@compiled
def _standard_normal(key: np.uint64) -> float:
    u, v = unit(key, np.uint64(0)), unit(key, np.uint64(1))
    return np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)


@compiled
def slow_noise(
    seed: np.uint64, salt: int, clients: int, at_s: np.ndarray, period_s: float
) -> np.ndarray:
    """[client, instant]: standard normal at each instant, moving on the scale of period_s.

    Made from independent normals at knots, joined and scaled to variance 1 everywhere,
    so that any instant can be asked for without the ones before it.
    """
    out = np.empty((clients, len(at_s)))
    base = key_of(key_of(seed, NOISE), np.uint64(salt))
    for c in range(clients):
        key = key_of(base, np.uint64(c))
        phase = unit(key, np.uint64(0))
        for i in range(len(at_s)):
            place = at_s[i] / period_s + phase
            knot = np.floor(place)
            f = place - knot
            # Offset keeps knots before the epoch positive.
            low = _standard_normal(key_of(key, np.uint64(np.int64(knot) + 1_000_000)))
            high = _standard_normal(key_of(key, np.uint64(np.int64(knot) + 1_000_001)))
            out[c, i] = ((1.0 - f) * low + f * high) / np.sqrt((1.0 - f) ** 2 + f**2)
    return out
