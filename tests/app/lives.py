"""A service's alerts over several lives: a store, a state database, and a clock that is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailburn.app.evaluating import Evaluating, Progress
from tailburn.engine.evaluation import AlertKey, Flip
from tailburn.engine.schema import VERDICTS
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.forgetting import KEPT_NS
from tests.app.verdicts import MINUTE_NS, verdict, verdicts

BEGIN_NS = 1_780_000_000_000_000_000 // (60 * MINUTE_NS) * 60 * MINUTE_NS
READY = Progress(lambda: 0, lambda: 0)


class Lives:
    """Minutes pass, rows are published, evaluations are made; `restart` is kill -9 and start."""

    def __init__(
        self,
        folder: Path,
        slos: Sequence[Slo],
        healthy: int = 60,
        is_told: bool = False,
        kept_ns: int = KEPT_NS,
    ) -> None:
        """`healthy` minutes lie behind the first start."""
        self._kept_ns = kept_ns
        self.slos = slos
        self.now_ns = BEGIN_NS
        self.store = ParquetStore(folder)
        self._is_told = is_told
        self._folder = folder
        self._published = 0
        self._publish([row for m in range(1, healthy + 1) for row in self.rows(0.0, ago=m)])
        self.start()

    def start(self) -> None:
        self.database = open_state(state_path(self._folder))
        self.evaluating = Evaluating(
            self.slos,
            self.database,
            lambda: self.now_ns,
            is_told=self._is_told,
            kept_ns=self._kept_ns,
        )
        self.evaluating.begin(self.store)

    def restart(self, minutes_later: float = 0, slos: Sequence[Slo] | None = None) -> None:
        """What was in memory is gone."""
        self.slos = self.slos if slos is None else slos
        self.database.close()
        self.now_ns += round(minutes_later * MINUTE_NS)
        self.start()

    def minute(self, bad_ratio: float | None, requests: int = 1000) -> None:
        """A minute in which this share of each SLO's requests was bad; None: nobody asked."""
        if bad_ratio is not None:
            self.publish(self.rows(bad_ratio, requests))
        self.now_ns += MINUTE_NS
        self.step()

    def minutes(self, count: int, bad_ratio: float | None, requests: int = 1000) -> None:
        for _ in range(count):
            self.minute(bad_ratio, requests)

    def rows(self, bad_ratio: float, requests: int = 1000, ago: int = 0) -> list[dict[str, Any]]:
        """Verdicts of the minute that runs, or of one before it."""
        minute_ns = self.now_ns // MINUTE_NS * MINUTE_NS - ago * MINUTE_NS
        return [
            verdict(slo, o.name, minute_ns, requests, round(bad_ratio * requests))
            for slo in self.slos
            for o in objectives(slo)
        ]

    def publish(self, rows: list[dict[str, Any]]) -> None:
        """To the store, and to who evaluates."""
        self.evaluating.take("verdicts", self._publish(rows))

    def _publish(self, rows: list[dict[str, Any]]) -> pa.Table:
        self._published += 1
        table = verdicts(rows) if rows else VERDICTS.empty_table()
        self.store.publish("verdicts", table, LogRange(self._published, self._published))
        return table

    def step(self) -> None:
        """Evaluate what is due a few seconds into the minute."""
        self.now_ns += 6_000_000_000
        try:
            self.evaluating.step(READY)
        finally:
            self.now_ns -= 6_000_000_000

    def firing(self) -> dict[AlertKey, int]:
        """Alerts that fire or are frozen, and since when, in minutes from the begin."""
        return {
            key: (state.since_ns - BEGIN_NS) // MINUTE_NS
            for key, state in self.evaluating.states().items()
            if state.status.fires
        }

    def pages(self) -> set[str]:
        """Names of alerts that page."""
        return {key.alertname for key in self.firing() if key.severity == "page"}

    def flips(self) -> list[Flip]:
        """All changes so far that have to do with firing."""
        return [f for f in Alerts(self.database).flips(0) if f.new.fires or f.old.fires]
