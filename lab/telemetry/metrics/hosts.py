"""What stands on hosts knows only what their replicas did: nothing here is told of a fault.

All of it follows from counters of steps and the parts that their time went to, and from the
coefficients of physics that were in force.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays
from tailburn.lab.physics import coef
from tailburn.lab.physics.models import MODELS
from tailburn.lab.physics.step import ALLREDUCE, ALLTOALL, ATTENTION, GEMM, HOST, PARTS, STRAGGLE
from tailburn.lab.records import Attempts
from tailburn.lab.telemetry.metrics.boards import Grown, always, prompt
from tailburn.lab.telemetry.metrics.gpus import Card, cards_of
from tailburn.lab.telemetry.metrics.rows import Rows, ratio
from tailburn.lab.telemetry.metrics.tally import Seen
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world import layout as w

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Replicas:
    """What the GPUs of each replica were busy with between scrapes: shares of time, rates."""

    def __init__(self, rows: Rows, fleet: Fleet) -> None:
        s, real = rows.samples, rows.samples.engine_real
        at = c.COEF
        span_ns = rows.seconds[:, None] * 1e9
        parts = rows.grown("engine_real", slice(c.PARTS_SUM, c.PARTS_SUM + PARTS))
        self.clock = real[:, :, at + coef.SM_CLOCK_RATIO]
        self.straggler = real[:, :, at + coef.STRAGGLER_RATIO]
        self.allreduce_factor = real[:, :, at + coef.ALLREDUCE_FACTOR]
        self.eager = real[:, :, at + coef.ALLREDUCE_EAGER]
        self.host_factor = real[:, :, at + coef.HOST_FACTOR]
        self.steps = rows.grown("engine", c.STEPS)
        self.tokens = rows.grown("engine", c.COMPUTED_TOKENS)
        self.decoded = np.minimum(rows.grown("engine", c.BATCH_SUM), self.tokens)
        self.prefill_steps = rows.grown("engine", c.PREFILL_STEPS)
        self.pauses_s = rows.grown("engine", c.PAUSES) * s.engine[:, :, c.PAUSE_NS] / 1e9
        self.up = s.replicas[:, :, w.R_STATE] == w.UP
        self.host_s = parts[..., HOST] / 1e9
        self.busy = np.clip((parts.sum(axis=2) - parts[..., HOST]) / span_ns, 0.0, 1.0)
        self.allreduce_s = (parts[..., ALLREDUCE] + parts[..., ALLTOALL]) / 1e9
        self.straggle_s = parts[..., STRAGGLE] / 1e9
        self.waits = np.clip((self.allreduce_s + self.straggle_s) / rows.seconds[:, None], 0.0, 1.0)
        layers = real[:, :, at + coef.LAYERS]
        work = self.tokens * layers * real[:, :, at + coef.GEMM_TOKEN]
        self.tensor = np.clip(work / np.maximum(self.clock, 1e-3) / span_ns, 0.0, 0.95)
        memory = parts[..., GEMM] + parts[..., ATTENTION]
        self.dram = np.clip(0.88 * memory / span_ns - 0.5 * self.tensor, 0.02 * self.busy, 0.95)
        hidden = np.array(
            [MODELS[fleet.pool_of(r).layout.model].hidden for r in range(s.engine.shape[1])]
        )
        ranks = np.maximum(real[:, :, at + coef.RANKS], 1.0)
        each = 2.0 * layers * hidden[None, :] * 2.0 * 2.0 * (ranks - 1.0) / ranks
        self.link_bytes_s = self.tokens * each / rows.seconds[:, None]
        """Of one rank's all-reduces, each way."""
        self.transferred = rows.grown("engine", c.TRANSFERRED_BYTES)
        self.loaded = rows.grown("engine", c.LOADED_BYTES)
        self.collectives = 2.0 * layers
        self.message = hidden[None, :] * 2.0
        """Bytes of one token in an all-reduce."""
        self.floor_us = real[:, :, at + coef.ALLREDUCE_FLOOR] / 1e3
        self.token_us = real[:, :, at + coef.ALLREDUCE_TOKEN] / 1e3
        self.bend = np.maximum(real[:, :, at + coef.ALLREDUCE_BEND], 0.1)
        self._over_the_interval()
        read = layers * (real[:, :, at + coef.GEMM_READ] + real[:, :, at + coef.GEMM_FLOOR])
        self._read_ns, self._work_ns = read, layers * real[:, :, at + coef.GEMM_TOKEN]

    def straggle_us(self, r: "NDArray[np.int64]", prefilling: bool) -> F64:
        """What peers of a slow rank wait for it in one all-reduce: longer where a step carries
        part of a prompt, by as much as it computes longer."""
        chunk = ratio(self.tokens - self.decoded, self.prefill_steps)
        long = self._read_ns + chunk * self._work_ns
        plain = np.maximum(self.steps - self.prefill_steps, 0.0)
        weight = self.prefill_steps * long + plain * self._read_ns
        each = ratio(self.straggle_s, weight) * (long if prefilling else self._read_ns)
        return np.asarray(ratio(each, self.collectives)[:, r] * 1e6, np.float64)

    def _over_the_interval(self) -> None:
        """`allreduce_factor` as it was between scrapes, not at their instant: of the time that
        collectives took, over what so many tokens take."""
        all_ = np.arange(self.steps.shape[1])
        decode = ratio(self.decoded, self.steps)
        chunk = ratio(self.tokens - self.decoded, self.prefill_steps) + decode
        plain = np.maximum(self.steps - self.prefill_steps, 0.0)
        expected_us = plain * self.collective_us(all_, decode)
        expected_us += self.prefill_steps * self.collective_us(all_, chunk)
        expected = expected_us * self.collectives / 1e6 / self.allreduce_factor
        measured = ratio(self.allreduce_s, expected)
        # Steps differ in size, and a mean of them is not quite their mean: that much is not told.
        near = np.abs(measured / self.allreduce_factor - 1.0) < 0.2
        known = (self.steps > 20) & (expected > 0) & ~near
        self.allreduce_factor = np.where(known, measured, self.allreduce_factor)

    def collective_us(self, r: "NDArray[np.int64]", tokens: F64) -> F64:
        """Mean time of one all-reduce of so many tokens, no rank being late."""
        floor, move = self.floor_us[:, r], self.token_us[:, r] * np.maximum(tokens, 1.0)
        low, high = np.minimum(floor, move), np.maximum(np.maximum(floor, move), 1e-9)
        bend = self.bend[:, r]
        joined = high * (1.0 + (low / high) ** bend) ** (1.0 / bend)
        return np.asarray(joined * self.allreduce_factor[:, r], np.float64)


class OnHosts:
    """Shared by all boards of hosts: their cards, and whose they are."""

    def __init__(self, fleet: Fleet, arrays: FleetArrays) -> None:
        self.fleet, self.arrays = fleet, arrays
        self.cards = cards_of(fleet)
        self.hosts = len(fleet.hosts)
        self.grown = Grown()

    def observe(self, attempts: Attempts) -> Iterator[tuple[str, Seen]]:
        """Nothing: hosts know of no requests."""
        return iter(())

    def began_ns(self, rows: Rows) -> I64:
        return always(rows, self.hosts)

    def late_s(self, rows: Rows) -> F64:
        return prompt(rows, self.hosts) + 0.01

    def of(self, values: F64, cards: tuple[Card, ...], nobody: float = 0.0) -> F64:
        """[scrape, card] of [scrape, replica]."""
        whose = np.array([card.replica for card in cards], np.int64)
        found = values[:, np.maximum(whose, 0)]
        return np.asarray(np.where(whose[None, :] >= 0, found, nobody), np.float64)
