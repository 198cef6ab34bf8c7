"""Alerts as values: what fires, how grave it is, by which labels it is told apart.

Each alert is stated here once. It has two faces that say the same: `rule`, which Prometheus
evaluates, and `watch`, which the service does itself. Routes and tests read the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tailburn.engine.evaluation import AlertKey, Watch
from tailburn.engine.evaluation.conditions import Condition
from tailburn.engine.evaluation.windows import FROZEN_AT_MOST_S, QUICK_S, SLOW_S, STRAIGHT_UP_TO_S
from tailburn.engine.names import (
    LONG_LABEL,
    OBJECTIVE_LABEL,
    SEVERITY_LABEL,
    SHORT_LABEL,
    SLO_LABEL,
    TEAM_LABEL,
)
from tailburn.engine.slo.burn import Pair, Severity
from tailburn.engine.slo.model import Slo
from tailburn.rules.model import Rule, literal
from tailburn.rules.promql import duration, indented, selector


class Kind(StrEnum):
    """What an alert is about; its alert name."""

    BURN = "TailburnBudgetBurn"
    TIER = "TailburnTier"
    REGRESSION = "TailburnTailRegression"
    DEADLINE = "TailburnDeadlineBurn"
    SCALE_OUT = "TailburnScaleOut"
    CONSISTENCY = "TailburnConsistency"
    STALLED = "TailburnStalledQueue"
    UNMEASURED = "TailburnUnmeasured"


FROZEN_AT_MOST: Final = duration(FROZEN_AT_MOST_S)
"""So long a firing alert outlives the data it rests on; then only `UNMEASURED` is left."""

_UNHURRIED: Final = (Kind.REGRESSION, Kind.CONSISTENCY, Kind.UNMEASURED)


@dataclass(frozen=True)
class Alert:
    """One alert of one SLO. Its identity: kind, slo, objective, long, short and `by`."""

    kind: Kind
    severity: Severity
    slo: Slo
    condition: str  # PromQL: a sample for each value of `by` that is in trouble
    long_s: int
    short_s: int
    objective: str = ""
    pair: Pair | None = None  # of a budget burn
    alive: str = ""  # PromQL: while it has samples, there are data
    remembered: str = ""  # a series that had samples as long; where it differs from `alive`
    for_s: int = 0
    annotations: Mapping[str, str] = field(default_factory=dict)
    in_process: Condition | None = None  # the same without a Prometheus; None: others count

    @property
    def by(self) -> tuple[str, ...]:
        """The labels that its samples carry, besides those that the rule sets."""
        return self.slo.by

    @property
    def labels(self) -> dict[str, str]:
        """What the rule sets; empty ones are left out."""
        told = {
            SEVERITY_LABEL: str(self.severity),
            SLO_LABEL: self.slo.name,
            OBJECTIVE_LABEL: self.objective,
            LONG_LABEL: duration(self.long_s),
            SHORT_LABEL: duration(self.short_s),
            TEAM_LABEL: self.slo.team,
        }
        return {name: value for name, value in told.items() if value}

    @property
    def interval_s(self) -> int:
        """Between two evaluations: four minutes are little to what looks back far."""
        can_wait = self.long_s > STRAIGHT_UP_TO_S or self.kind in _UNHURRIED
        return SLOW_S if can_wait else QUICK_S

    @property
    def expr(self) -> str:
        """The condition; or, while its data are missing, that it fired before they were."""
        if not self.alive:
            return self.condition
        identity = {"alertname": str(self.kind), "alertstate": "firing"} | self.labels
        fired = f"max without (alertstate) ({selector('ALERTS', identity)})"
        on = f"on ({', '.join(self.by)})"
        return (
            f"(\n{indented(self.condition)}\n)\nor\n(\n"
            f"  {fired}\n  unless {on}\n  {self.alive}\n"
            f"  and {on}\n  last_over_time({self.remembered or self.alive}[{FROZEN_AT_MOST}])\n)"
        )

    @property
    def rule(self) -> Rule:
        """Its PromQL face."""
        return Rule(
            self.expr,
            alert=str(self.kind),
            for_s=self.for_s,
            labels={name: literal(value) for name, value in self.labels.items()},
            annotations=self.annotations,
        )

    @property
    def watch(self) -> Watch | None:
        """Its face in process; None where the service does not count the SLO itself."""
        if self.in_process is None or self.slo.source is not None:
            return None
        long, short = duration(self.long_s), duration(self.short_s)
        key = AlertKey(
            str(self.kind), self.slo.name, self.objective, str(self.severity), long, short
        )
        return Watch(key, self.slo, self.in_process, self.for_s, self.interval_s)
