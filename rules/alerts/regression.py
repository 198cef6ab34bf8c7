"""Tail regression: p99 of 5 min against this hour of the day as it was on the days before.

A few hundred requests have their p99 from three of them, and a heavy tail puts those anywhere: so
many must have come that it is no chance, or p95 must be over as well. Against yesterday alone the
comparison is a literal one, and asks for neither.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.chance import requests_each
from tailburn.engine.evaluation.tails import OverBaseline
from tailburn.engine.names import SLO_LABEL, slo_over_baseline_record, slo_quantile_record
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import QUANTILES, Clock, Regression, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, told
from tailburn.rules.promql import number, selector
from tailburn.rules.recording.baseline import clocks_compared
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW, WINDOW_S, came_enough

FOR_S: Final = 300


def alerts(slo: Slo) -> Iterator[Alert]:
    """One for each of TTFT and TPOT that the SLO speaks of."""
    if slo.regression is not None:
        for clock in clocks_compared(slo):
            yield _alert(slo, clock, slo.regression)


def _alert(slo: Slo, clock: Clock, regression: Regression) -> Alert:
    over = selector(slo_over_baseline_record(clock), {SLO_LABEL: slo.name})
    each = requests_each(1 - QUANTILES["p99"]) if regression.days > 1 else 0.0
    no_chance = _no_chance(slo, clock, regression, each) if each else ""
    days = "the day" if regression.days == 1 else f"up to {regression.days} days"
    return Alert(
        kind=Kind.REGRESSION,
        severity=Severity.TICKET,
        slo=slo,
        objective=f"{clock}_p99",
        condition=f"{over} > {number(regression.ratio)}{no_chance}",
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
        in_process=OverBaseline(clock, regression.ratio, regression.days, SAMPLES["p99"], each),
    )


def _no_chance(slo: Slo, clock: Clock, regression: Regression, each: float) -> str:
    """That many requests came, or that p95 is as far over the baseline of p99."""
    over, p95, p99 = (
        selector(record, {SLO_LABEL: slo.name})
        for record in (
            slo_over_baseline_record(clock),
            slo_quantile_record(clock, "p95", WINDOW),
            slo_quantile_record(clock, "p99", WINDOW),
        )
    )
    on = f"on ({', '.join((SLO_LABEL, *slo.by))})"
    shifted = f"{p95} / {p99} * {over} > {number(regression.ratio)}"
    return f"\nand {on}\n(\n  {came_enough(slo, clock, each)}\n  or {on}\n  {shifted}\n)"
