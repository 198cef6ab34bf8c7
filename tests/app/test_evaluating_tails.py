"""Alerts on percentiles over a kill: what is read again from the store is what was known before."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from tailburn.app.evaluating import Evaluating
from tailburn.engine import histogram
from tailburn.engine.evaluation import Status
from tailburn.engine.schema import ROLLUPS
from tailburn.engine.slo.model import Clock, Place, Regression, Slo, Tier
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.database import open_state, state_path
from tests.app.lives import BEGIN_NS, READY
from tests.app.verdicts import MINUTE_NS

SLO: Final = Slo(
    "chat",
    Place("chat.yaml", 1),
    clocks={Clock.TTFT: {Tier.ACCEPTABLE: {"p99": 30.0}, Tier.CRITICAL: {"p50": 1.0}}},
    regression=Regression(1.5, 1),
)
REQUESTS: Final = 600


def rollups(times_s: dict[int, float]) -> pa.Table:
    """Each minute's requests all took as long."""
    bucket = {m: int(histogram.bucket_of(np.array([s]))[0]) for m, s in times_s.items()}
    columns = {
        "minute_ns": list(times_s),
        "clock": ["ttft_gateway_s"] * len(times_s),
        "count": [REQUESTS] * len(times_s),
        "sum_s": [s * REQUESTS for s in times_s.values()],
        "buckets": [[bucket[m]] for m in times_s],
        "counts": [[REQUESTS]] * len(times_s),
    }
    arrays = [
        pa.array(columns[f.name]).cast(f.type)
        if f.name in columns
        else pa.nulls(len(times_s), f.type)
        for f in ROLLUPS
    ]
    return pa.table(arrays, schema=ROLLUPS)


class Tails:
    """A day and a half of well minutes lie behind the first start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now_ns, self._position = folder, BEGIN_NS, 1
        self.store = ParquetStore(folder)
        past = {BEGIN_NS - m * MINUTE_NS: 0.1 for m in range(36 * 60, 0, -1)}
        self.store.publish("rollups", rollups(past), LogRange(1, 1))
        self.start()

    def start(self) -> None:
        self.database = open_state(state_path(self.folder))
        self.evaluating = Evaluating([SLO], self.database, lambda: self.now_ns)
        self.evaluating.begin(self.store)

    def restart(self) -> None:
        self.database.close()
        self.start()

    def minutes(self, count: int, time_s: float) -> None:
        for _ in range(count):
            table = rollups({self.now_ns: time_s})
            self._position += 1
            self.store.publish("rollups", table, LogRange(self._position, self._position))
            self.evaluating.take("rollups", table)
            self.now_ns += MINUTE_NS
            self.evaluating.step(READY)

    def stand(self) -> dict[str, Status]:
        return {key.objective: s.status for key, s in self.evaluating.states().items()
                if key.alertname != "TailburnUnmeasured"}  # fmt: skip


def test_a_critical_percentile_goes_on_firing_over_a_kill(tmp_path: Path) -> None:
    lived = Tails(tmp_path)
    lived.minutes(20, 3.0)
    assert lived.stand()["ttft_p50_critical"] is Status.FIRING
    begun = dict(lived.evaluating.states())
    for _ in range(4):
        lived.restart()
        lived.minutes(1, 3.0)
        assert lived.stand()["ttft_p50_critical"] is Status.FIRING
    key = next(k for k in begun if k.objective == "ttft_p50_critical")
    assert lived.evaluating.states()[key].since_ns == begun[key].since_ns


def test_the_days_before_are_known_at_the_first_start_and_after_a_kill(tmp_path: Path) -> None:
    lived = Tails(tmp_path)
    lived.minutes(20, 0.4)
    assert lived.stand() == {"ttft_p99": Status.FIRING}
    lived.restart()
    lived.minutes(8, 0.4)
    assert lived.stand() == {"ttft_p99": Status.FIRING}
    lived.minutes(20, 0.1)
    assert lived.stand() == {}
