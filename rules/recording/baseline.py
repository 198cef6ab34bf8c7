"""The tail of this hour as it was on the days before: the median of up to three of them.

The hour is centred on the same time of day: p99 of an hour, as it was recorded 23.5 h ago. An
hour in which the SLO paged, or its tail was already known to be worse, is no baseline: it would
hide today's incident behind yesterday's.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.windows import LOOKED_FOR_S
from tailburn.engine.names import (
    SLO_LABEL,
    slo_baseline_record,
    slo_over_baseline_record,
    slo_quantile_record,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerting import Kind
from tailburn.rules.model import Rule
from tailburn.rules.promql import duration, indented, selector
from tailburn.rules.recording.percentiles import HOUR, WINDOW, clocks_of

_LOOKED_FOR: Final = duration(LOOKED_FOR_S)
_CLOCKS: Final = (Clock.TTFT, Clock.TPOT)
_DAY: Final = "day"


def clocks_compared(slo: Slo) -> tuple[Clock, ...]:
    """Those whose tail is held against the days before."""
    if slo.regression is None:
        return ()
    return tuple(clock for clock in clocks_of(slo) if clock in _CLOCKS)


def baselines(slo: Slo) -> Iterator[Rule]:
    """p99 of this hour on the days before, per clock."""
    assert slo.regression is not None or not clocks_compared(slo)
    for clock in clocks_compared(slo):
        days = range(1, slo.regression.days + 1) if slo.regression else ()
        arms = "\nor\n".join(_arm(slo, clock, day) for day in days)
        expr = f"quantile without ({_DAY}) (0.5,\n{indented(arms)}\n)"
        yield Rule(expr, slo_baseline_record(clock))


def over_baselines(slo: Slo) -> Iterator[Rule]:
    """p99 of the last 5 min over that; no sample where either is not known."""
    for clock in clocks_compared(slo):
        now = selector(slo_quantile_record(clock, "p99", WINDOW), {SLO_LABEL: slo.name})
        then = selector(slo_baseline_record(clock), {SLO_LABEL: slo.name})
        yield Rule(
            f"{now}\n/\nlast_over_time({then}[{_LOOKED_FOR}])", slo_over_baseline_record(clock)
        )


def _arm(slo: Slo, clock: Clock, day: int) -> str:
    ago = duration(day * burn.DAY_S - burn.HOUR_S // 2)
    hour = selector(slo_quantile_record(clock, "p99", HOUR), {SLO_LABEL: slo.name})
    on = f"on ({', '.join((SLO_LABEL, *slo.by))})"
    return (
        f"label_replace(\n  last_over_time({hour}[{_LOOKED_FOR}] offset {ago})\n"
        f"  unless {on}\n  ({_incident(slo, ago)}),\n"
        f'  "{_DAY}", "{day}", "", ""\n)'
    )


def _incident(slo: Slo, ago: str) -> str:
    """Samples where the SLO was in trouble within that hour."""
    fired = {"alertstate": "firing", SLO_LABEL: slo.name}
    paged = selector("ALERTS", fired | {"severity": str(Severity.PAGE)})
    worse = selector("ALERTS", fired | {"alertname": str(Kind.REGRESSION)})
    return " or ".join(f"count_over_time({a}[{HOUR}] offset {ago})" for a in (paged, worse))
