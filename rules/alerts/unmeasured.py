"""Unmeasured: an SLO without data is not met, nor missed; somebody has to look at the telemetry.

Either nothing is counted any more, or too many requests end without the times that it takes to
judge them.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.shares import UnmeasuredShare
from tailburn.engine.evaluation.silences import Gone
from tailburn.engine.evaluation.windows import SAMPLED_S
from tailburn.engine.names import (
    OBJECTIVE_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import Severity
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, Slo
from tailburn.rules.alerting import Alert, Kind
from tailburn.rules.alerts.burn import identity
from tailburn.rules.annotating import definition, percent, told
from tailburn.rules.promql import by, duration, number, selector
from tailburn.rules.recording.rates import sampled_record
from tailburn.rules.sources.choose import budgets_of

GONE_FOR_S: Final = 600
REMEMBERED_S: Final = burn.DAY_S
SHARE_S: Final = 30 * burn.MINUTE_S
SHARE_RATIO: Final = 0.1


def alerts(slo: Slo) -> Iterator[Alert]:
    """For each budget: that its data are gone; and that too many requests have none."""
    for budget in budgets_of(slo):
        yield _gone(slo, budget)
        if slo.source is None:
            yield _share(slo, budget)


def _gone(slo: Slo, budget: Objective) -> Alert:
    chosen = identity(slo, budget)
    bad = selector(sampled_record(SLO_BAD_RATE_RECORD, SAMPLED_S), chosen)
    labels = by((SLO_LABEL, OBJECTIVE_LABEL, *slo.by))
    ever = f"max {labels} (last_over_time({bad}[{duration(REMEMBERED_S)}]))"
    never = f"max {labels} (absent({bad}))\n  unless on ()\n  {ever}"
    condition = f"{ever}\nunless\nmax {labels} ({bad})\nor\n(\n  {never}\n)"
    return Alert(
        kind=Kind.UNMEASURED,
        severity=Severity.TICKET,
        slo=slo,
        objective=budget.name,
        condition=condition,
        long_s=REMEMBERED_S,
        short_s=SAMPLED_S,
        for_s=GONE_FOR_S,
        annotations=told(
            slo,
            f"{budget.name} is not measured any more",
            f"No data for {duration(SAMPLED_S + GONE_FOR_S)}. The budget stands still, alerts on "
            "it are frozen. Look at the scrape, and at what the service receives.",
            definition(slo, budget),
        ),
        in_process=Gone(budget.name, definition_of(slo, budget)),
    )


def _share(slo: Slo, budget: Objective) -> Alert:
    window = duration(SHARE_S)
    labels = by((SLO_LABEL, OBJECTIVE_LABEL, *slo.by))
    unmeasured, requests = (
        f"sum {labels} (rate({selector(metric, identity(slo, budget))}[{window}]))"
        for metric in (SLO_UNMEASURED_METRIC, SLO_REQUESTS_METRIC)
    )
    return Alert(
        kind=Kind.UNMEASURED,
        severity=Severity.TICKET,
        slo=slo,
        objective=budget.name,
        condition=f"{unmeasured}\n/\n({unmeasured} + {requests})\n> {number(SHARE_RATIO)}",
        long_s=SHARE_S,
        short_s=SHARE_S,
        for_s=GONE_FOR_S,
        annotations=told(
            slo,
            f"{budget.name}: too many requests can not be judged",
            f"More than {percent(SHARE_RATIO)} of the requests of the last {window} lack what it "
            "takes to judge them. See `tailburn doctor`.",
            definition(slo, budget),
        ),
        in_process=UnmeasuredShare(budget.name, definition_of(slo, budget), SHARE_S, SHARE_RATIO),
    )
