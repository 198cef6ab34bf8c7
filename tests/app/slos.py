"""An SLO, and counters of it that remember in memory what was shown."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tailburn.app.births import Births
from tailburn.app.slo_series import SloSeries
from tailburn.engine.slo.model import Clock, Place, Slo, Tier
from tailburn.engine.store.state.shown import SeriesKey

CHAT = Slo(
    "chat",
    Place("chat.yaml", 1),
    vantage="client",
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}}},
    availability_ratio=0.999,
)
BY_MODEL = replace(CHAT, name="by-model", by=("model",), availability_ratio=None)


class Remembered:
    """What outlives a kill."""

    def __init__(self) -> None:
        self.keys: set[SeriesKey] = set()

    def all(self) -> set[SeriesKey]:
        return set(self.keys)

    def add(self, keys: Iterable[SeriesKey], now_ns: int) -> None:
        self.keys |= set(keys)


def slo_series(
    *slos: Slo,
    record: Remembered | None = None,
    now_s: Callable[[], float] = time.monotonic,
    now_ns: Callable[[], int] = time.time_ns,
    **bounds: int,
) -> SloSeries:
    """Ready to be shown, but for `restore`."""
    series = SloSeries(slos, Births(record or Remembered(), now_s), now_ns, **bounds)
    series.caught_up = True
    return series
