"""Deadline burn: requests slower than what the same load and prompt length took, times 1.5.

The service sets each request's deadline and counts who missed it. A tenth within 5 min and 3 %
within 30 min, at 5 and 10 misses, gave at most one false page a week in a week of real traffic,
where the plain comparison with yesterday was true for 4 to 28 % of healthy minutes.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.names import (
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, told
from tailburn.rules.promql import by, duration, number, selector

SHORT_S: Final = 5 * burn.MINUTE_S
LONG_S: Final = 30 * burn.MINUTE_S
SHORT_RATIO: Final = 0.1
LONG_RATIO: Final = 0.03
SHORT_MISSES: Final = 5
LONG_MISSES: Final = 10


def alerts(slo: Slo) -> Iterator[Alert]:
    """One, where the service counts and the SLO promises a first token."""
    if slo.source is None and Clock.TTFT in slo.clocks:
        yield Alert(
            kind=Kind.DEADLINE,
            severity=Severity.PAGE,
            slo=slo,
            condition=_condition(slo),
            long_s=LONG_S,
            short_s=SHORT_S,
            alive=selector(SLO_DEADLINE_REQUESTS_METRIC, {SLO_LABEL: slo.name}),
            annotations=told(
                slo,
                "first tokens come late for the load there is",
                f"{number(SHORT_RATIO * 100)} % of the requests of the last {duration(SHORT_S)} "
                f"and {number(LONG_RATIO * 100)} % of the last {duration(LONG_S)} took more than "
                "1.5 times the p99 of a week at the same load and prompt length.",
                clock_definition(slo, Clock.TTFT),
            ),
        )


def _condition(slo: Slo) -> str:
    return "\nand\n".join(
        (
            f"{_rate(slo, SLO_DEADLINE_MISSED_METRIC, SHORT_S)}\n"
            f"/ {_rate(slo, SLO_DEADLINE_REQUESTS_METRIC, SHORT_S)} >= {number(SHORT_RATIO)}",
            f"{_rate(slo, SLO_DEADLINE_MISSED_METRIC, LONG_S)}\n"
            f"/ {_rate(slo, SLO_DEADLINE_REQUESTS_METRIC, LONG_S)} >= {number(LONG_RATIO)}",
            f"{_rate(slo, SLO_DEADLINE_MISSED_METRIC, SHORT_S)} * {SHORT_S} >= {SHORT_MISSES}",
            f"{_rate(slo, SLO_DEADLINE_MISSED_METRIC, LONG_S)} * {LONG_S} >= {LONG_MISSES}",
        )
    )


def _rate(slo: Slo, metric: str, window_s: int) -> str:
    chosen = selector(metric, {SLO_LABEL: slo.name})
    return f"sum {by((SLO_LABEL, *slo.by))} (rate({chosen}[{duration(window_s)}]))"
