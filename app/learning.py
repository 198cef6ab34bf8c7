"""What is usual, learnt from requests as they close, beside the counters of SLOs."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.app.slo_series import SloSeries
from tailburn.collector.pipeline import Uncounted
from tailburn.engine.baseline.usual import Past, Usual


class Learning:
    """Each first version of a request is learnt from once and judged by all SLOs."""

    def __init__(self, past: Past, slo_series: SloSeries | None) -> None:
        """`past` gives the rows of USUAL that are in the store."""
        self._usual = Usual(past)
        self._slo_series = slo_series
        self._counts = slo_series or Uncounted()

    def count(self, rows: pa.Table, replaced: pa.Table) -> None:
        """Rows of REQUESTS, and the older versions that some of them replace."""
        deadline_s = self._usual.take(rows.filter(pc.equal(rows["version"], 1)))
        if self._slo_series is not None:
            self._slo_series.count(rows, replaced, deadline_s)

    def hear(self, signals: pa.Table) -> None:
        """Rows of SIGNALS."""
        self._usual.hear(signals)

    def take_rows(self) -> Mapping[str, pa.Table]:
        """What the SLOs counted, and the cells of hours that closed."""
        return {**self._counts.take_rows(), "usual": self._usual.take_rows()}

    def state(self) -> Mapping[str, Any]:
        """All of it, as JSON can hold it, after `take_rows`."""
        return {"slos": self._counts.state(), "usual": self._usual.state()}

    def restore(self, state: Any) -> None:
        """Go on from what `state` gave; before anything was learnt it was the SLOs' alone."""
        if isinstance(state, Mapping):
            self._usual.restore(state["usual"])
            state = state["slos"]
        self._counts.restore(state)
