"""The scrapes of one feed, with the one before them, so that differences have a beginning."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet import Fleet
from tailburn.lab.world.samples import Samples

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Scrapes in order. `before`: the last one of the feed before; None at the very first."""

    samples: Samples
    before: Samples | None
    epoch_unix_ns: int

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def seconds(self) -> F64:
        """Since the scrape before each; of the first since the run's epoch."""
        at = self.samples.at_ns
        first = self.before.at_ns[-1] if self.before is not None and len(self.before) else 0
        return np.maximum(np.diff(at, prepend=first) / 1e9, 1e-3)

    def grown(self, name: str, column: int | slice) -> F64:
        """By how much a counter of `Samples` grew since the scrape before: [scrape, thing].

        A counter that began anew grew by what it shows.
        """
        now = getattr(self.samples, name)[:, :, column].astype(np.float64)
        old = np.zeros_like(now[:1])
        if self.before is not None and len(self.before):
            old = getattr(self.before, name)[-1:, :, column].astype(np.float64)
        by = np.diff(now, axis=0, prepend=old)
        return np.where(by < 0, now, by)


def first_router(fleet: Fleet) -> int:
    """Its place among the stations of `Samples`: below the gateways, guardrail and retrieval."""
    return len(fleet.gateways) + 2


def first_tokenizer(fleet: Fleet) -> int:
    """Its place among the stations of `Samples`: below a router for each pool."""
    return first_router(fleet) + len(fleet.pools)


def ratio(part: "NDArray[np.number]", whole: "NDArray[np.number]") -> F64:
    """part / whole, 0 where there is no whole."""
    over = np.asarray(whole, np.float64)
    return np.divide(part, over, out=np.zeros(np.broadcast(part, over).shape), where=over > 0)
