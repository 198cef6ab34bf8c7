"""Tail regression: p99 of 5 min against this hour of the day as it was on the days before."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.tails import OverBaseline
from tailburn.engine.names import SLO_LABEL, slo_over_baseline_record
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Regression, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, told
from tailburn.rules.promql import number, selector
from tailburn.rules.recording.baseline import clocks_compared
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW, WINDOW_S

FOR_S: Final = 300


def alerts(slo: Slo) -> Iterator[Alert]:
    """One for each of TTFT and TPOT that the SLO speaks of."""
    if slo.regression is not None:
        for clock in clocks_compared(slo):
            yield _alert(slo, clock, slo.regression)


def _alert(slo: Slo, clock: Clock, regression: Regression) -> Alert:
    over = selector(slo_over_baseline_record(clock), {SLO_LABEL: slo.name})
    days = "the day" if regression.days == 1 else f"up to {regression.days} days"
    return Alert(
        kind=Kind.REGRESSION,
        severity=Severity.TICKET,
        slo=slo,
        objective=f"{clock}_p99",
        condition=f"{over} > {number(regression.ratio)}",
        long_s=regression.days * burn.DAY_S,
        short_s=WINDOW_S,
        alive=over,
        for_s=FOR_S,
        annotations=told(
            slo,
            f"{clock.upper()} p99 is {number(regression.ratio)} times that of the days before",
            f"p99 of the last {WINDOW} stayed above {number(regression.ratio)} times the median "
            f"of this hour on {days} before, hours of incidents left out.",
            clock_definition(slo, clock),
        ),
        in_process=OverBaseline(clock, regression.ratio, regression.days, SAMPLES["p99"]),
    )
