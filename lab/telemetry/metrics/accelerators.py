"""GPUs as DCGM exporter shows them, and collectives as NCCL Inspector writes them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet, FleetArrays
from tailburn.lab.physics.gpus import GPUS
from tailburn.lab.telemetry.metrics.boards import Signals
from tailburn.lab.telemetry.metrics.gpus import Card
from tailburn.lab.telemetry.metrics.hosts import OnHosts, Replicas
from tailburn.lab.telemetry.metrics.rows import Rows, ratio

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

BOOST_MHZ: Final = {"A100": 1410, "H100": 1980, "H200": 1980, "B200": 1965,
                    "RTX-4090": 2520, "RTX-PRO-6000": 2430}  # fmt: skip
MEMORY_MHZ: Final = {"A100": 1593, "H100": 2619, "H200": 3201, "B200": 3996,
                     "RTX-4090": 10501, "RTX-PRO-6000": 14001}  # fmt: skip
BOARD_W: Final = {"A100": 400.0, "H100": 700.0, "H200": 700.0, "B200": 1000.0,
                  "RTX-4090": 450.0, "RTX-PRO-6000": 600.0}  # fmt: skip
"""Data sheets: boost clock of the SMs, clock of the memory, power limit."""


class Dcgm(OnHosts):
    """GPUs, as DCGM has them."""

    def signals(self, rows: Rows) -> Signals:
        did = Replicas(rows, self.fleet)
        hosts = [self._host(i, cards, did, rows) for i, cards in enumerate(self.cards)]
        return {name: [host[name] for host in hosts] for name in hosts[0]}

    def _host(
        self, host: int, cards: tuple[Card, ...], did: Replicas, rows: Rows
    ) -> dict[str, F64]:
        grown, span = self.grown, rows.seconds[:, None]
        last = np.array([card.rank == card.ranks - 1 and card.ranks > 1 for card in cards])
        first = np.array([card.rank == 0 for card in cards])
        slow = np.where(last, self.of(did.straggler, cards, 1.0), 1.0)
        speed = self.of(did.clock, cards, 1.0) * slow
        busy = self.of(did.busy, cards) * self.of(did.up.astype(np.float64), cards)
        # Peers of a rank that pauses spin in the collective; the one that pauses launches nothing.
        paused = np.clip(self.of(did.pauses_s, cards) / span, 0.0, 1.0)
        busy = np.clip(busy + np.where(first, 0.0, paused), 0.0, 1.0)
        tensor, dram = self.of(did.tensor, cards), self.of(did.dram, cards)
        kind = [card.gpu for card in cards]
        board = np.array([BOARD_W[k] for k in kind])
        draws = 0.16 + 0.30 * busy + 0.34 * tensor + 0.26 * dram
        power = board * np.minimum(draws, 1.0) * (0.35 + 0.65 * speed**1.5)
        # A clock that is held down is held down by heat: the usual cause, and what shows it.
        hot = np.clip(1.0 - speed, 0.0, 0.5)
        temperature = (
            31.0 + 34.0 * power / np.maximum(board, 1.0) + 60.0 * np.minimum(hot * 2.0, 0.6)
        )
        held = np.where(hot > 0.02, np.minimum(hot * 1.4 + 0.2, 1.0), 0.0) * (busy > 0.02)
        link = self.of(did.link_bytes_s, cards)
        eager = self.of(did.eager, cards) > 0.5
        memory = np.array([GPUS[k].memory_gib * 1024.0 for k in kind])
        used = np.where(self.of(did.up.astype(np.float64), cards) > 0, 0.9, 0.004) * memory
        key = f"{host} "
        return {
            "sm_clock": np.round(np.array([BOOST_MHZ[k] for k in kind]) * speed / 15.0) * 15.0,
            "memory_clock": np.array([float(MEMORY_MHZ[k]) for k in kind]) + 0.0 * speed,
            "gpu_temp": np.round(temperature),
            "memory_temp": np.round(temperature + 9.0),
            "power_w": np.round(power, 3),
            "energy_mj": np.round(grown.of(key + "energy", power * span * 1e3, 4.1e9)),
            "gpu_util": np.round(100.0 * busy),
            "copy_util": np.round(100.0 * dram),
            "engine_active": busy,
            "sm_active": np.clip(busy - 0.5 * self.of(did.waits, cards), 0.0, 1.0),
            "tensor_active": tensor,
            "dram_active": dram,
            "pcie_tx": 2.0e7 + 3.0e8 * busy + np.where(eager, link, 0.0),
            "pcie_rx": 2.4e7 + 3.2e8 * busy + np.where(eager, link, 0.0)
            + self.of(did.loaded, cards) / span / np.maximum([card.ranks for card in cards], 1),
            "nvlink_bytes": np.where(eager, 0.0, link),
            "nvlink_total": np.round(
                grown.of(key + "nvlink", np.where(eager, 0.0, 2.0 * link) * span / 1e6)
            ),
            "fb_used": np.round(used),
            "fb_free": np.round(memory * 0.996 - used),
            "fb_reserved": np.round(memory * 0.004) + 0.0 * busy,
            "thermal_ns": np.round(grown.of(key + "thermal", held * span * 1e9)),
            "thermal_events": np.where(held > 0, np.round(held * 30.0), 0.0),
            "none": 0.0 * busy,
        }  # fmt: skip


CLASSES_MB: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Message sizes that the Inspector's file tells apart here."""
SMALL_KB: Final = (8, 16, 32, 64, 128, 256, 512)
SIZES: Final = tuple(f"{k}-{k + 1}KB" for k in SMALL_KB) + tuple(
    f"{m}-{m + 1}MB" for m in CLASSES_MB
)
_BOUNDS: Final = np.array([k * 1024.0 for k in SMALL_KB] + [m * 1048576.0 for m in CLASSES_MB])


class Nccl(OnHosts):
    """Collectives by rank, as NCCL Inspector writes them into a file every 30 s at least.

    Within a host vLLM and its like reduce small messages by kernels of their own: only those of
    prompts (above 8 MB) go through NCCL. What lies on two hosts always does.
    """

    EVERY_NS: Final = 30 * 10**9
    CUSTOM_MOST: Final = 8 * 1048576.0

    def __init__(self, fleet: Fleet, arrays: FleetArrays) -> None:
        super().__init__(fleet, arrays)
        self._written: dict[int, tuple[int, F64, F64]] = {}

    def signals(self, rows: Rows) -> Signals:
        did = Replicas(rows, self.fleet)
        found = [self._host(i, rows, did) for i in range(self.hosts)]
        return {"exec_us": [one for one, _ in found], "busbw": [other for _, other in found]}

    def _host(self, host: int, rows: Rows, did: Replicas) -> tuple[F64, F64]:
        cards = tuple(card for card in self.cards[host] if card.ranks > 1)
        exec_us = np.full((len(rows), len(cards), len(SIZES)), np.nan)
        busbw = exec_us.copy()
        if cards:
            whose = np.array([card.replica for card in cards], np.int64)
            decode = ratio(did.decoded, did.steps)[:, whose]
            chunk = ratio(did.tokens - did.decoded, did.prefill_steps)[:, whose] + decode
            for tokens, ran, prefills in (
                (decode, did.steps, False),
                (chunk, did.prefill_steps, True),
            ):
                late = did.straggle_us(whose, prefills)
                self._told(exec_us, busbw, cards, whose, tokens, ran[:, whose], did, late)
        flat = (len(rows), len(cards) * len(SIZES))
        return self._as_written(host, rows, exec_us.reshape(flat), busbw.reshape(flat))

    def _told(
        self, exec_us: F64, busbw: F64, cards: tuple[Card, ...], whose: I64, tokens: F64, ran: F64,
        did: Replicas, late: F64,
    ) -> None:  # fmt: skip
        size = tokens * did.message[:, whose]
        took = did.collective_us(whose, tokens)
        last = np.array([card.rank == card.ranks - 1 for card in cards])
        # The slow rank comes last and waits for nobody; its peers wait for it in the kernel.
        slow = did.straggler[:, whose] < 1.0
        took = took + np.where(last[None, :] & slow, 0.0, late)
        within = np.array([card.hosts == 1 for card in cards])
        seen = (ran > 0) & (size >= 8192.0) & ~(within[None, :] & (size < self.CUSTOM_MOST))
        ranks = np.array([card.ranks for card in cards], np.float64)
        gbs = ratio(size, took * 1e3) * 2.0 * (ranks - 1.0) / ranks
        which = np.clip(np.searchsorted(_BOUNDS, size, "right") - 1, 0, len(SIZES) - 1)
        row, card = np.nonzero(seen)
        exec_us[row, card, which[row, card]] = np.round(took[row, card], 2)
        busbw[row, card, which[row, card]] = np.round(gbs[row, card], 3)

    def _as_written(self, host: int, rows: Rows, exec_us: F64, busbw: F64) -> tuple[F64, F64]:
        """Each scrape finds the file as it was last written."""
        for r, at in enumerate(rows.samples.at_ns.tolist()):
            last = self._written.get(host)
            if last is None or at - last[0] >= self.EVERY_NS or last[0] > at:
                self._written[host] = at, exec_us[r].copy(), busbw[r].copy()
            else:
                exec_us[r], busbw[r] = last[1], last[2]
        return exec_us, busbw
