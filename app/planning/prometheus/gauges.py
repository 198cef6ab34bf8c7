"""Requests in flight, as a Prometheus knew them at each whole minute."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tailburn.app.planning.prometheus.asking import Asking
from tailburn.engine.names import SLO_IN_FLIGHT_METRIC, SLO_LABEL, UNKNOWN
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.slo.model import Slo
from tailburn.rules.promql import by, selector


def in_flight_series(slo: Slo) -> str:
    """The gauges of an SLO."""
    return selector(SLO_IN_FLIGHT_METRIC, {SLO_LABEL: slo.name})


@dataclass(frozen=True)
class InFlight:
    """Read as it is asked for."""

    slo: Slo
    asking: Asking

    def __call__(self, begin_ns: int, end_ns: int) -> Mapping[int, Mapping[tuple[str, ...], float]]:
        """After `begin_ns` up to `end_ns`: by time, then by the values of `by`. Raises UserError.

        As in rules: a value stands for the five minutes after which Prometheus lets go of it.
        """
        query = f"sum {by((SLO_LABEL, *self.slo.by))} ({in_flight_series(self.slo)})"
        first_s, last_s = (begin_ns + MINUTE_NS) // 10**9, end_ns // 10**9
        found: dict[int, dict[tuple[str, ...], float]] = defaultdict(dict)
        for [answer] in self.asking.pieces([query], first_s, last_s):
            for series in answer:
                values = tuple(series.labels.get(name) or UNKNOWN for name in self.slo.by)
                told = np.isfinite(series.values)
                for at_s, count in zip(series.at_s[told].tolist(), series.values[told].tolist(),
                                       strict=True):  # fmt: skip
                    found[at_s * 10**9][values] = count
        return found
