"""How much each client asks for, block by block: measured, or from a shape and noise."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tailburn.lab.workload.draws import gamma_shape, weibull_shape
from tailburn.lab.workload.shapes import WeekShape, slow_noise

BLOCK_S = 600
"""Length of a block: the window of ServeGen's measured rates, in seconds."""


@dataclass(frozen=True)
class BlockRates:
    """What holds in one block: rates in req/s by client and equal segment, and burstiness."""

    per_s: np.ndarray
    cv: np.ndarray
    weibull: np.ndarray


class Rates(Protocol):
    """Rates of every client; `mean_per_s` is their long-run mean, in req/s."""

    @property
    def mean_per_s(self) -> np.ndarray: ...

    def at(self, seed: np.uint64, block: int) -> BlockRates: ...


@dataclass(frozen=True)
class MeasuredRates:
    """Rates as measured, [client, block]; after the last block comes the first again."""

    per_s: np.ndarray
    cv: np.ndarray
    weibull: np.ndarray

    @property
    def mean_per_s(self) -> np.ndarray:
        return np.asarray(self.per_s.mean(axis=1))

    def at(self, seed: np.uint64, block: int) -> BlockRates:
        b = block % self.per_s.shape[1]
        return BlockRates(self.per_s[:, b : b + 1], self.cv[:, b], self.weibull[:, b])


@dataclass(frozen=True)
class Gate:
    """Bursts within minutes, all clients at once: open for a share of the time.

    Azure's coding traffic is like that: its counts are 13 times as dispersed as
    Poisson's at 1 s, 72 times at 10 s, 164 times at 60 s and no more at 300 s.
    """

    open_share: float
    period_s: float
    shut_factor: float = 0.0
    """Rate while shut, relative to the rate while open."""

    def factor(self, seed: np.uint64, at_s: np.ndarray) -> np.ndarray:
        """Relative rate at each instant, mean 1 over time."""
        threshold = _normal_quantile(1.0 - self.open_share)
        opened = slow_noise(seed, 101, 1, at_s, self.period_s)[0] > threshold
        mean = self.open_share + (1.0 - self.open_share) * self.shut_factor
        return np.asarray(np.where(opened, 1.0, self.shut_factor) / mean)


@dataclass(frozen=True)
class ShapedRates:
    """Long-run rates x week shape x noise of the whole and of each client x its own on and off."""

    base_per_s: np.ndarray
    cv: np.ndarray
    weibull: np.ndarray
    shape: WeekShape
    active_share: np.ndarray
    """Share of time each client is there at all; its rate then is higher in proportion."""
    noise: "tuple[tuple[float, float], ...]" = ()
    """(sigma of the log rate, period in s) of noise common to all."""
    own_noise: "tuple[tuple[float, float], ...]" = ()
    """The same, for each client by itself."""
    active_period_s: float = 3 * 3600.0
    gate: Gate | None = None

    @property
    def mean_per_s(self) -> np.ndarray:
        return self.base_per_s

    def at(self, seed: np.uint64, block: int) -> BlockRates:
        segment_s = BLOCK_S if self.gate is None else 2.0
        at_s = block * float(BLOCK_S) + (np.arange(int(BLOCK_S / segment_s)) + 0.5) * segment_s
        middle = np.array([(block + 0.5) * BLOCK_S])
        clients = len(self.base_per_s)
        rate = self.base_per_s * self.shape.at(middle)
        for salt, (sigma, period_s) in enumerate(self.noise):
            rate = rate * np.exp(
                sigma * slow_noise(seed, salt, 1, middle, period_s)[0] - sigma**2 / 2
            )
        for salt, (sigma, period_s) in enumerate(self.own_noise, start=50):
            own = slow_noise(seed, salt, clients, middle, period_s)[:, 0]
            rate = rate * np.exp(sigma * own - sigma**2 / 2)
        if (self.active_share < 1.0).any():
            there = slow_noise(seed, 100, clients, middle, self.active_period_s)[:, 0]
            on = there > _normal_quantile(1.0 - self.active_share)
            rate = np.where(on, rate / self.active_share, 0.0)
        per_s = np.repeat(rate[:, None], len(at_s), axis=1)
        if self.gate is not None:
            per_s = per_s * self.gate.factor(seed, at_s)
        return BlockRates(per_s, self.cv, self.weibull)


def thinned_cv(cv: np.ndarray, share: float) -> np.ndarray:
    """CV of the intervals when each arrival is kept with odds `share`; as it is above 1.

    Exact for a renewal process. So fewer users of the same sort make smaller bursts,
    not the same bursts more rarely.
    """
    if share >= 1.0:
        return cv
    return np.sqrt(1.0 - share + share * np.square(cv))


def shapes_of(cv: np.ndarray, weibull: np.ndarray) -> np.ndarray:
    """Shape of each client's intervals, from their CV and family."""
    held = np.clip(cv, 0.05, 100.0)
    return np.where(weibull, weibull_shape(held), gamma_shape(held))


def _normal_quantile(u: "np.ndarray | float") -> np.ndarray:
    """The u-quantile of the standard normal; minus infinity at 0."""
    grid = np.linspace(-6.0, 6.0, 4801)
    density = np.exp(-np.square(grid) / 2)
    below = np.cumsum(density) / density.sum()
    return np.where(np.asarray(u) <= 0.0, -np.inf, np.interp(u, below, grid))
