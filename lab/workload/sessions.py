"""Slots in which conversations run: a client's open conversations, forgotten once an hour."""

from dataclasses import dataclass

import numpy as np

from tailburn.lab.workload.clients import Clients
from tailburn.lab.workload.rates import BLOCK_S

EPOCH_BLOCKS = 3600 // BLOCK_S
"""A client's conversations end at the latest after so many blocks, each client's at its own
phase: so the state at any block is made by the few before it, and a stream can begin anywhere."""


@dataclass
class Slots:
    """Client c's conversations are in slots first[c] .. first[c + 1] - 1."""

    first: np.ndarray
    session: np.ndarray
    turns: np.ndarray
    tokens: np.ndarray

    @classmethod
    def for_clients(cls, mean_per_s: np.ndarray, clients: Clients) -> "Slots":
        """As many slots as a client has arrivals within its usual time to think.

        Arrivals crowd on the lower ones (place = u^1.5), so that times between turns
        spread as those between reuses of a prefix do.
        """
        think_s = np.array([clients.kinds[k].think_s for k in clients.kind_of])
        turns = np.array([clients.kinds[k].turns for k in clients.kind_of])
        count = np.where(turns > 0, np.ceil(mean_per_s * think_s), 0).astype(np.int64)
        count = np.maximum(count, turns > 0)
        first = np.concatenate([[0], np.cumsum(count)])
        blank = [np.zeros(first[-1], np.int64) for _ in range(3)]
        return cls(first, *blank)

    @property
    def any(self) -> bool:
        """Whether any client holds conversations."""
        return len(self.session) > 0

    def begin(self, block: int) -> None:
        """Ends the conversations of the clients whose hour is over."""
        over = (block + np.arange(len(self.first) - 1)) % EPOCH_BLOCKS == 0
        self.turns[np.repeat(over, np.diff(self.first))] = 0
