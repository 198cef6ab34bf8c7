"""A store as a service leaves it whose budget begins to burn."""

import time
from pathlib import Path

from tailburn.engine.slo.parse import parse
from tailburn.engine.store.api import LogRange
from tailburn.engine.store.parquet import ParquetStore
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state
from tailburn.engine.store.state.place import place_of
from tests.app.verdicts import MINUTE_NS, verdict, verdicts

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat, labels: {team: serving}}
spec:
  by: [model]
  availability: 99%
"""
OUTAGE = 12
"""Minutes of the past in which all is bad, the last of them now."""


def burn(store: Path, state_url: str = "", pair: str = "") -> None:
    """Leave what a service leaves that counted seven hours, at whose end all was bad."""
    (slo,) = parse([("chat.yaml", SLO)]).slos
    end_ns = time.time_ns() // MINUTE_NS * MINUTE_NS
    rows = [
        verdict(
            slo, "availability", end_ns - ago * MINUTE_NS, 600, 600 * (ago <= OUTAGE), model="a"
        )
        for ago in range(420, 0, -1)
    ]
    ParquetStore(store).publish("verdicts", verdicts(rows), LogRange(0, 0))
    database = open_state(place_of(store, state_url, pair))
    Alerts(database).write(end_ns - MINUTE_NS, {}, {}, [], end_ns - 420 * MINUTE_NS)
    database.close()
