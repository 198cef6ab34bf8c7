"""How the evaluation of alerts itself goes, for `/metrics`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tailburn.engine.evaluation import Status
from tailburn.engine.slo.burn import Severity

BEHIND_S: Final = 120.0
"""Twice the time between two evaluations, and four times what one waits for its rows."""


@dataclass(frozen=True)
class Health:
    """How evaluation itself is."""

    minute_ns: int | None = None  # the last that was evaluated
    took_s: float = 0.0
    alerts: int = 0  # stated in the SLOs
    series: int = 0  # of their budgets, by the values of `by`
    active: Mapping[tuple[str, str], int] = field(default_factory=dict)  # by severity and status
    evaluations: int = 0
    failures: int = 0
    skipped_minutes: int = 0
    unwritten_minutes: int = 0  # evaluated, and not in the state database yet
    impatient: int = 0  # evaluated before all rows of the minute were there
    caught_up_s: float | None = None  # when nothing was due any more; None: not begun

    def is_behind(self, now_s: float) -> bool:
        """Whether minutes that are due have not been evaluated for `BEHIND_S`."""
        return self.caught_up_s is not None and now_s - self.caught_up_s > BEHIND_S


def evaluation_families(
    health: Callable[[], Health], monotonic_s: Callable[[], float]
) -> Iterator[Metric]:
    """What was evaluated when, what was not, and how alerts stand."""
    now = health()
    yield from _course(now, monotonic_s())
    yield GaugeMetricFamily(
        "tailburn_evaluation_alerts", "Alerts stated in the SLOs; 0: none are evaluated.",
        now.alerts,
    )  # fmt: skip
    yield GaugeMetricFamily(
        "tailburn_evaluation_series", "Series of budgets that are evaluated.", now.series
    )
    active = GaugeMetricFamily(
        "tailburn_alerts", "Alerts in trouble, of all SLOs.", labels=["severity", "status"]
    )
    for severity in Severity:
        for status in (Status.PENDING, Status.FIRING, Status.FROZEN):
            active.add_metric([severity, status], now.active.get((severity, status), 0))
    yield active


def _course(now: Health, now_s: float) -> Iterator[Metric]:
    yield CounterMetricFamily("tailburn_evaluations", "Minutes evaluated.", now.evaluations)
    yield CounterMetricFamily(
        "tailburn_evaluation_failures", "Tries to evaluate a minute that failed.", now.failures
    )
    yield CounterMetricFamily(
        "tailburn_evaluations_skipped", "Minutes that were never evaluated: a gap.",
        now.skipped_minutes,
    )  # fmt: skip
    yield CounterMetricFamily(
        "tailburn_evaluations_impatient", "Minutes evaluated before all their rows were there.",
        now.impatient,
    )  # fmt: skip
    yield GaugeMetricFamily(
        "tailburn_evaluation_unwritten", "Minutes evaluated that wait for the state database.",
        now.unwritten_minutes,
    )  # fmt: skip
    if now.minute_ns is not None:
        yield GaugeMetricFamily(
            "tailburn_evaluated_timestamp_seconds", "The last minute that was evaluated.",
            now.minute_ns / 1e9,
        )  # fmt: skip
        yield GaugeMetricFamily(
            "tailburn_evaluation_seconds", "How long its evaluation took.", now.took_s
        )
    yield GaugeMetricFamily(
        "tailburn_evaluation_behind",
        f"1 while minutes that are due have not been evaluated for {BEHIND_S:g} s.",
        int(now.is_behind(now_s)),
    )
