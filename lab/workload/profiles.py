"""A workload put together: clients, their rates, their lengths; by name or from a file."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tailburn.lab.workload import lengths
from tailburn.lab.workload.clients import Clients, concentrated, make_clients
from tailburn.lab.workload.errors import unknown
from tailburn.lab.workload.figures import FIGURES, LEVELS, Figures
from tailburn.lab.workload.rates import BLOCK_S, Rates, ShapedRates
from tailburn.lab.workload.shapes import WeekShape, slow_noise

DEFAULT_MODEL = "llama-3.1-70b"


@dataclass(frozen=True)
class BlockLengths:
    """Which row of the tables each client draws from in one block, and where it leans."""

    prompt_row: np.ndarray
    output_row: np.ndarray
    lean: np.ndarray


class Lengths(Protocol):
    """Tables of prompt and output lengths [row, level], and who uses which row when."""

    @property
    def prompts(self) -> np.ndarray: ...
    @property
    def outputs(self) -> np.ndarray: ...
    @property
    def client_weight(self) -> float: ...
    @property
    def prompt_cap(self) -> int: ...

    def at(self, seed: np.uint64, block: int, clients: int) -> BlockLengths: ...


@dataclass(frozen=True)
class SharedLengths:
    """One distribution for all clients, each with a level of its own that drifts over a day."""

    prompts: np.ndarray
    outputs: np.ndarray
    prompt_cap: int
    client_weight: float = 0.0

    def at(self, seed: np.uint64, block: int, clients: int) -> BlockLengths:
        row = np.zeros(clients, np.int64)
        lean = np.zeros(clients)
        if self.client_weight:
            middle = np.array([(block + 0.5) * BLOCK_S])
            lean = slow_noise(seed, 200, clients, middle, 86_400.0)[:, 0]
        return BlockLengths(row, row, lean)


@dataclass(frozen=True)
class MeasuredLengths:
    """A row for each client and 6-h window; after the last window comes the first again."""

    prompts: np.ndarray
    outputs: np.ndarray
    row_of: np.ndarray
    """[client, window]: row of both tables."""
    window_s: int
    prompt_cap: int = 262_144
    client_weight: float = 0.0

    def at(self, seed: np.uint64, block: int, clients: int) -> BlockLengths:
        window = (block * BLOCK_S // self.window_s) % self.row_of.shape[1]
        rows = np.zeros(clients, np.int64)
        rows[: len(self.row_of)] = self.row_of[:, window]
        return BlockLengths(rows, rows, np.zeros(clients))


@dataclass(frozen=True)
class Recorded:
    """Requests as recorded, in order; after `span_ns` they come again from the start."""

    at_ns: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    span_ns: int


@dataclass(frozen=True)
class Profile:
    """All that a stream of requests is drawn from; `source` says where it came from."""

    name: str
    source: str
    clients: Clients
    rates: Rates
    lengths: Lengths
    recorded: Recorded | None = None

    @property
    def per_s(self) -> float:
        """Its own long-run rate, in req/s."""
        if self.recorded is not None:
            return len(self.recorded.at_ns) / self.recorded.span_ns * 1e9
        return float(self.rates.mean_per_s.sum())


def named(name: str) -> Profile:
    """The workload of that name from the shipped figures; WorkloadError names the nearest."""
    if name not in FIGURES:
        raise unknown("workload", name, list(FIGURES))
    return built(name, FIGURES[name], f"shipped figures of {name}")


def built(name: str, figures: Figures, source: str = "") -> Profile:
    """A workload of figures; `source` says where they are from."""
    weights = figures.per_s * concentrated(figures.clients, figures.top_share, figures.carry_90)
    return Profile(
        name,
        source or name,
        clients_of(figures, weights),
        shaped_rates(figures, weights, WeekShape.of(figures.hours, figures.days)),
        shared_lengths(figures),
    )


def clients_of(figures: Figures, weights: np.ndarray) -> Clients:
    """Its clients, for given rates in req/s."""
    most = np.full(len(weights), figures.output_cap)
    return make_clients(weights, figures.mix, most, (DEFAULT_MODEL,), np.zeros(len(weights)))


def shaped_rates(figures: Figures, weights: np.ndarray, shape: WeekShape) -> ShapedRates:
    """Rates that move as the figures say; the largest clients are there all the time."""
    n = len(weights)
    # Which client is how bursty has nothing to do with its size: a fixed shuffle.
    places = (np.arange(n) * 0.6180339887 + 0.5 / n) % 1.0
    levels = np.log(np.array(figures.cv))
    cv = np.exp(np.interp(places, LEVELS, levels))
    weibull = (np.arange(n) * 0.7548776662) % 1.0 >= figures.gamma_share
    share = weights / weights.sum()
    # Half a percent of all traffic and more: always there; the smallest rarely.
    active = np.clip(figures.active_median * share / np.median(share), 0.02, 1.0)
    active = np.where(share >= 0.005, 1.0, active) if figures.active_median < 1 else np.ones(n)
    return ShapedRates(
        weights, cv, weibull, shape, active, figures.noise, figures.own_noise, gate=figures.gate
    )


def shared_lengths(figures: Figures) -> SharedLengths:
    """One distribution of prompts and one of outputs, up to their caps."""
    levels = (*LEVELS, 1.0)
    at, prompt = levels, (*figures.prompt, figures.prompt_cap)
    if figures.prompt_cap_share:
        at = (*levels[:-2], 1.0 - figures.prompt_cap_share, 1.0)
        prompt = (*figures.prompt[:-1], figures.prompt_cap, figures.prompt_cap)
    output = (*figures.output, figures.output_cap)
    return SharedLengths(
        lengths.with_mean(at, prompt, figures.prompt_mean)[None],
        lengths.with_mean(levels, output, figures.output_mean)[None],
        figures.prompt_cap,
        figures.client_weight,
    )
