"""Deadline burn: requests slower than what the same load and prompt length took, times 1.5.

The service sets each request's deadline and counts who missed it. A tenth within 5 min and 3 %
within 30 min, at 5 and 10 misses, gave at most one false page a week in a week of real traffic,
where the plain comparison with yesterday was true for 4 to 28 % of healthy minutes.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.shares import Share, Shares
from tailburn.engine.names import (
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_MISSED_RATE_RECORD,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_DEADLINE_TOTAL_RATE_RECORD,
    SLO_LABEL,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.lateness import DEADLINE, has_deadlines
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules import chance
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, percent, told
from tailburn.rules.model import Rule
from tailburn.rules.promql import by, duration, number, selector

SHORT_S: Final = 5 * burn.MINUTE_S
LONG_S: Final = 30 * burn.MINUTE_S
SHORT_RATIO: Final = 0.1
LONG_RATIO: Final = 0.03
SHORT_MISSES: Final = 5
LONG_MISSES: Final = 10
HEALTHY_RATIO: Final = 0.01
"""No more than this misses 1.5 times the p99; what does over 30 min must be more than chance."""
is_counted: Final = has_deadlines


def rates(slo: Slo) -> Iterator[Rule]:
    """Requests with a deadline a second, and those that missed it, over both windows."""
    if not is_counted(slo):
        return
    for window_s in (SHORT_S, LONG_S):
        for record, metric in (
            (SLO_DEADLINE_TOTAL_RATE_RECORD, SLO_DEADLINE_REQUESTS_METRIC),
            (SLO_DEADLINE_MISSED_RATE_RECORD, SLO_DEADLINE_MISSED_METRIC),
        ):
            rate = f"rate({selector(metric, {SLO_LABEL: slo.name})}[{duration(window_s)}])"
            expr = f"sum {by((SLO_LABEL, *slo.by))} ({rate})"
            yield Rule(expr, f"{record}{duration(window_s)}")


def alerts(slo: Slo) -> Iterator[Alert]:
    """One, where there are deadlines."""
    if not is_counted(slo):
        return
    short, long = duration(SHORT_S), duration(LONG_S)
    yield Alert(
        kind=Kind.DEADLINE,
        severity=Severity.PAGE,
        slo=slo,
        condition=_condition(slo),
        long_s=LONG_S,
        short_s=SHORT_S,
        alive=_recorded(slo, SLO_DEADLINE_TOTAL_RATE_RECORD, SHORT_S),
        annotations=told(
            slo,
            "first tokens come late for the load there is",
            f"{percent(SHORT_RATIO)} of the requests of the last {short} and "
            f"{percent(LONG_RATIO)} of the last {long} took more than 1.5 times the p99 of a "
            "week at the same load and prompt length.",
            clock_definition(slo, Clock.TTFT),
        ),
        in_process=Shares(
            DEADLINE,
            "",
            (
                Share(SHORT_S, SHORT_RATIO, True, least_bad=SHORT_MISSES),
                Share(LONG_S, LONG_RATIO, True, least_bad=LONG_MISSES),
            ),
            healthy_ratio=HEALTHY_RATIO,
        ),
    )


def _condition(slo: Slo) -> str:
    parts = []
    for window_s, ratio, misses in (
        (SHORT_S, SHORT_RATIO, SHORT_MISSES),
        (LONG_S, LONG_RATIO, LONG_MISSES),
    ):
        missed = _recorded(slo, SLO_DEADLINE_MISSED_RATE_RECORD, window_s)
        total = _recorded(slo, SLO_DEADLINE_TOTAL_RATE_RECORD, window_s)
        parts.append(f"{missed} / {total} >= {number(ratio)}")
        parts.append(f"{missed} * {window_s} >= {misses}")
    no_chance = chance.surprise(missed, total, LONG_S, HEALTHY_RATIO)
    parts.append(f"{no_chance} >= {chance.enough(total, is_single=not slo.by)}")
    return "\nand\n".join(parts)


def _recorded(slo: Slo, record: str, window_s: int) -> str:
    return selector(f"{record}{duration(window_s)}", {SLO_LABEL: slo.name})
