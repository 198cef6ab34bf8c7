"""What became of each target and sample, for whoever watches the service."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tailburn.collector.scrape.errors import Reason

BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
KEPT: Final = "kept"
UNKNOWN: Final = "no signal"  # of a name that nothing is mapped to
REFUSED: Final = "not durable"  # read, and the log did not take it


@dataclass
class Standing:
    """How a target was when last read."""

    instance: str
    job: str
    via: str
    reason: Reason
    message: str = ""  # what is wrong, or what was left out
    sources: tuple[str, ...] = ()
    samples: int = 0
    duration_s: float = 0.0


@dataclass
class Tally:
    """Counts since the start. Written on the event loop, read anywhere."""

    targets: dict[str, Standing] = field(default_factory=dict)  # by address
    samples: Counter[str] = field(default_factory=Counter)  # by fate
    reads: Counter[Reason] = field(default_factory=Counter)
    duration_buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    duration_sum_s: float = 0.0

    def took(self, seconds: float) -> None:
        """Notes how long one target took to be read."""
        place = next((i for i, bound in enumerate(BOUNDS_S) if seconds <= bound), len(BOUNDS_S))
        self.duration_buckets[place] += 1
        self.duration_sum_s += seconds
