"""A service's scaling signals over several lives: a store, a state database, a clock."""

from pathlib import Path

import pyarrow as pa

from tailburn.app.answers.scaling import Shown
from tailburn.app.evaluating import Evaluating
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.database import open_state, state_path
from tests.app.lives import BEGIN_NS, READY
from tests.app.verdicts import MINUTE_NS
from tests.rules.scaling.both_faces import Stretch, readings, rows_at, series_of, told

_NS = 1_000_000_000


class Fleet:
    """Minutes pass, rows are published and evaluated; `restart` is kill -9 and start."""

    def __init__(self, folder: Path, *slos: Slo, reads_gauges: bool = False) -> None:
        self.slos, self.reads_gauges = slos, reads_gauges
        self.now_ns = BEGIN_NS
        self.store = ParquetStore(folder)
        self._folder, self._published = folder, 0
        self.start()

    def start(self) -> None:
        self.database = open_state(state_path(self._folder))
        self.evaluating = Evaluating(
            self.slos, self.database, lambda: self.now_ns, reads_gauges=self.reads_gauges
        )
        self.evaluating.begin(self.store)

    def restart(self) -> None:
        """What was in memory is gone."""
        self.database.close()
        self.start()

    def minutes(self, one: Stretch) -> None:
        """Each minute of it."""
        for _ in range(one.minutes):
            begin_ns = self.now_ns
            self.now_ns += MINUTE_NS
            for slo in self.slos:
                for labels in series_of(slo):
                    for table, rows in rows_at(slo, labels, told(one, labels), begin_ns):
                        self._publish(table, rows)
            for rows in readings({}, one, self.now_ns // _NS):
                self._publish("signals", rows)
            self.now_ns += 6 * _NS
            try:
                self.evaluating.step(READY)
            finally:
                self.now_ns -= 6 * _NS

    def shown(self, tenant: str | None = None) -> Shown:
        """What is told of it now."""
        evaluating = self.evaluating
        return Shown(
            evaluating.scaling(), evaluating.scaled, evaluating.no_gauges, self.now_ns, tenant
        )

    def _publish(self, table: str, rows: pa.Table) -> None:
        self._published += 1
        self.store.publish(table, rows, LogRange(self._published, self._published))
        self.evaluating.take(table, rows)
