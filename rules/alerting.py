"""Alerts as values: what fires, how grave it is, by which labels it is told apart.

Each alert is stated here once. Its PromQL face is `expr`; routes and tests read the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


FROZEN_AT_MOST = "6h"
"""So long a firing alert outlives the data it rests on; then only `UNMEASURED` is left."""


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
