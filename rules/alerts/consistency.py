"""Consistency: how far a batch pool's slowest are from its usual, which is what one plans by."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.tails import Consistency
from tailburn.engine.names import SLO_LABEL, slo_quantile_record
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, told
from tailburn.rules.promql import number, selector
from tailburn.rules.recording.percentiles import HOUR, SAMPLES, clocks_of

FOR_S: Final = 900


def alerts(slo: Slo) -> Iterator[Alert]:
    """One, where the SLO promises a ratio."""
    ratio = slo.consistency_p99_over_p50
    if ratio is None or Clock.E2E not in clocks_of(slo):
        return
    p99, p50 = (
        selector(slo_quantile_record(Clock.E2E, percentile, HOUR), {SLO_LABEL: slo.name})
        for percentile in ("p99", "p50")
    )
    yield Alert(
        kind=Kind.CONSISTENCY,
        severity=Severity.TICKET,
        slo=slo,
        objective="consistency",
        condition=f"{p99} / {p50} > {number(ratio)}",
        long_s=burn.HOUR_S,
        short_s=burn.HOUR_S,
        alive=p99,
        for_s=FOR_S,
        annotations=told(
            slo,
            f"the slowest take more than {number(ratio)} times the usual",
            f"p99 over p50 of E2E in the last {HOUR} stayed above {number(ratio)}.",
            clock_definition(slo, Clock.E2E),
        ),
        in_process=Consistency(Clock.E2E, ratio, SAMPLES["p99"], SAMPLES["p50"]),
    )
