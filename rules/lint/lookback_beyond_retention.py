"""LOOKBACK_BEYOND_RETENTION: a rule that asks for samples which are deleted by then."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Rolling, Slo
from tailburn.rules.lint.finding import Finding, error, span
from tailburn.rules.lint.known import Known

CODE: Final = "LOOKBACK_BEYOND_RETENTION"
_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3600.0


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """The budget looks back over its window, the baseline over the same hour of some days."""
    retention_s = known.retention_s
    if retention_s is None and known.prometheus is not None:
        retention_s = known.prometheus.retention_s
    if retention_s is None:
        return
    for field, what, back_s in _lookbacks(slo):
        if back_s > retention_s:
            yield error(
                CODE,
                slo,
                field,
                f"{what} looks back {span(back_s)}",
                f"Prometheus keeps {span(retention_s)}",
                f"start it with --storage.tsdb.retention.time={span(back_s + _DAY_S)}, "
                "or shorten the window",
            )


def _lookbacks(slo: Slo) -> Iterator[tuple[str, str, float]]:
    if isinstance(slo.window, Rolling):
        yield "spec.window", "the budget", slo.window.seconds
    if slo.regression is not None:
        back_s = slo.regression.days * _DAY_S + _HOUR_S
        yield "spec.regression.days", "the baseline", back_s
