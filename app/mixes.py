"""The service's look, once an hour, at whether its SLOs were made of other requests than there are.

Shown as gauges; what moved is told in the log once, and again when it moved back and away.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

from tailburn.app.answers.mixes import mix_rows, moved, told
from tailburn.app.text_format import Sample, gauge
from tailburn.engine.names import (
    MEASURE_LABEL,
    SLO_LABEL,
    SLO_MIX_INDEX_METRIC,
    SLO_MIX_MOVED_METRIC,
)
from tailburn.engine.slo.mix import Verdict
from tailburn.engine.slo.model import Slo
from tailburn.engine.store.api import Store

log = logging.getLogger(__name__)

EVERY_NS: Final = 3_600_000_000_000
_GAUGES: Final = {
    SLO_MIX_INDEX_METRIC: "How far the requests of a day are from those the SLO was made of.",
    SLO_MIX_MOVED_METRIC: "1 where that is far enough to revisit the SLO.",
}


class MixWatch:
    """How the mix of each SLO stood when it was last looked at."""

    def __init__(self, slos: Sequence[Slo]) -> None:
        self._slos = [slo for slo in slos if slo.mix is not None]
        self._tenants = {slo.name: slo.select.get("tenant") for slo in self._slos}
        self._rows: Sequence[dict[str, Any]] = ()
        self._looked_ns: int | None = None

    def look(self, store: Store, now_ns: int) -> None:
        """Ask the store, where the last time is an hour ago. Raises StoreError."""
        if not self._slos:
            return
        if self._looked_ns is not None and 0 <= now_ns - self._looked_ns < EVERY_NS:
            return
        before = {_key(row) for row in self._rows if row["verdict"] == Verdict.MOVED}
        self._rows, self._looked_ns = mix_rows(store, self._slos, now_ns), now_ns
        for row in self._rows:
            if row["verdict"] == Verdict.MOVED and _key(row) not in before:
                log.warning("SLO %s was made of other requests: %s", row["slo"], told(row))

    def moved(self, tenant: str | None = None) -> dict[str, str]:
        """By SLO what moved, in words."""
        return moved(self._seen_by(tenant))

    def render(self, tenant: str | None = None) -> str:
        """In the Prometheus text format, without what too few requests tell of."""
        known = [row for row in self._seen_by(tenant) if row["psi"] is not None]
        return "".join(
            gauge(metric, help_text, (_sample(metric, row) for row in known))
            for metric, help_text in _GAUGES.items()
        )

    def _seen_by(self, tenant: str | None) -> list[dict[str, Any]]:
        return [r for r in self._rows if tenant in (None, self._tenants[r["slo"]])]


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["slo"], row["of"]


def _sample(metric: str, row: dict[str, Any]) -> Sample:
    moved = int(row["verdict"] == Verdict.MOVED)
    value = row["psi"] if metric == SLO_MIX_INDEX_METRIC else moved
    return {SLO_LABEL: row["slo"], MEASURE_LABEL: row["of"]}, value
