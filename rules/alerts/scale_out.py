"""Scale-out: p99 TTFT near what is acceptable, while there is time to start a replica."""

from collections.abc import Iterator

from tailburn.engine.evaluation.tails import QuantileOver
from tailburn.engine.names import SLO_LABEL, slo_quantile_record
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.model import Clock, Slo, Tier
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.annotating import clock_definition, seconds, told
from tailburn.rules.promql import duration, number, selector
from tailburn.rules.recording.percentiles import SAMPLES, WINDOW, WINDOW_S, clocks_of


def alerts(slo: Slo) -> Iterator[Alert]:
    """One, where the SLO asks for it and states an acceptable p99 of TTFT."""
    threshold_s = threshold_of(slo)
    if slo.scale_out is None or threshold_s is None:
        return
    now = selector(slo_quantile_record(Clock.TTFT, "p99", WINDOW), {SLO_LABEL: slo.name})
    share, for_s = f"{number(slo.scale_out.at_ratio * 100)} %", round(slo.scale_out.for_s)
    yield Alert(
        kind=Kind.SCALE_OUT,
        severity=Severity.TICKET,
        slo=slo,
        objective="ttft_p99",
        condition=f"{now} > {number(threshold_s)}",
        long_s=WINDOW_S,
        short_s=WINDOW_S,
        alive=now,
        for_s=for_s,
        annotations=told(
            slo,
            f"TTFT p99 is above {share} of what is acceptable",
            f"p99 of the last {WINDOW} stayed above {seconds(threshold_s)} for {duration(for_s)}. "
            "Add replicas if the queue owns the excess.",
            clock_definition(slo, Clock.TTFT),
        ),
        in_process=QuantileOver(Clock.TTFT, "p99", threshold_s, SAMPLES["p99"]),
    )


def threshold_of(slo: Slo) -> float | None:
    """Seconds of p99 TTFT from which on to scale; None where the SLO gives none."""
    acceptable_s = slo.clocks.get(Clock.TTFT, {}).get(Tier.ACCEPTABLE, {}).get("p99")
    if slo.scale_out is None or acceptable_s is None or Clock.TTFT not in clocks_of(slo):
        return None
    return acceptable_s * slo.scale_out.at_ratio
