"""Where every span went: received = stored + folded + ... + open, per resource, always."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.names import FATES

FATE = {name: i for i, name in enumerate(FATES)}


@dataclass(frozen=True)
class Line:
    """The spans of one resource. `fates` has one entry for each of FATES."""

    resource: int
    received: int
    fates: Mapping[str, int]

    @property
    def unaccounted(self) -> int:
        """What no fate explains; anything but 0 is a fault of this program."""
        return self.received - sum(self.fates.values())


class Balance:
    """Counts spans by resource and fate, and by reason where a fate has several."""

    def __init__(self) -> None:
        self._received = np.zeros(64, np.int64)
        self._fates = np.zeros((64, len(FATES)), np.int64)
        self.reasons: Counter[tuple[str, str]] = Counter()

    def receive(self, resource: NDArray[np.integer]) -> None:
        """Note spans as they come in, one entry each with its resource code; they are open."""
        if len(resource):
            counts = np.bincount(resource)
            self._room_for(len(counts))
            self._received[: len(counts)] += counts
            self._fates[: len(counts), FATE["open"]] += counts

    def reject(self, resource: int, reason: str, count: int) -> None:
        """Note spans that the door refused."""
        self._room_for(resource + 1)
        self._received[resource] += count
        self._fates[resource, FATE["rejected"]] += count
        self.reasons["rejected", reason] += count

    def settle(self, resource: NDArray[np.integer], fate: str, reason: str = "") -> None:
        """Move open spans, one entry each, to their fate."""
        if len(resource):
            counts = np.bincount(resource)
            self._fates[: len(counts), FATE["open"]] -= counts
            self._fates[: len(counts), FATE[fate]] += counts
            if reason:
                self.reasons[fate, reason] += len(resource)

    def sample_out(self, resource: int, count: int) -> None:
        """Move stored spans to those that thinning took out of the store."""
        self._room_for(resource + 1)
        self._fates[resource, FATE["stored"]] -= count
        self._fates[resource, FATE["sampled_out"]] += count

    def lines(self) -> Iterator[Line]:
        """One line per resource that sent anything."""
        for code in np.flatnonzero(self._received):
            fates = dict(zip(FATES, self._fates[code].tolist(), strict=True))
            yield Line(int(code), int(self._received[code]), fates)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs, JSON-able."""
        return {
            "received": self._received.tolist(),
            "fates": self._fates.tolist(),
            "reasons": [[fate, reason, n] for (fate, reason), n in self.reasons.items()],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Balance":
        """Take over what `state` gave."""
        balance = cls()
        balance._received = np.array(state["received"], np.int64)
        balance._fates = np.array(state["fates"], np.int64)
        for fate, reason, n in state["reasons"]:
            balance.reasons[str(fate), str(reason)] = n
        return balance

    def _room_for(self, resources: int) -> None:
        missing = resources - len(self._received)
        if missing > 0:
            more = max(missing, len(self._received))
            self._received = np.concatenate([self._received, np.zeros(more, np.int64)])
            empty = np.zeros((more, len(FATES)), np.int64)
            self._fates = np.concatenate([self._fates, empty])
