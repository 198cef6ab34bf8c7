"""What a signal for autoscalers rests on, stated once for PromQL and for the service itself."""

from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation.history import Needs
from tailburn.engine.evaluation.windows import DAY_S, HOUR_S, MINUTE_S, SAMPLED_S
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Clock, Slo, objectives

INTERVAL_S: Final = MINUTE_S
QUIET_S: Final = 30 * MINUTE_S
OWNER_S: Final = 30 * MINUTE_S
"""Over which it is asked who owns the excess of slow requests."""
PAST_TOLERANCE: Final = 1.11
"""Autoscalers take no step for less than a tenth."""
QUIET_TTFT: Final = 0.5
"""Of what would add replicas."""
QUIET_WAITING: Final = 1
"""Requests in a queue, at any minute of the half hour."""
RISE: Final = 1.1
AHEAD_S: Final = HOUR_S
_SEEN: Final = 0.8  # of the evaluations of a window: the rest may have been missed


@dataclass(frozen=True)
class Targets:
    """What a replica should carry at most, on the mean."""

    waiting: float = 5.0  # requests in its queue
    kv_ratio: float = 0.85  # of its KV cache; engines preempt from about 0.9 on

    @property
    def quiet_waiting_ratio(self) -> float:
        """Of the target: what a queue stays under where a replica may go."""
        return QUIET_WAITING / self.waiting


@dataclass(frozen=True)
class Terms:
    """When an SLO asks for replicas, and when one may go."""

    slo: Slo
    threshold_s: float  # p99 TTFT from which on it asks
    for_s: int  # and for how long
    least: int  # requests that a p99 takes
    targets: Targets = Targets()

    @property
    def budgets(self) -> tuple[tuple[str, str], ...]:
        """Objective and definition of those whose requests are counted."""
        slo = self.slo
        return tuple((o.name, definition_of(slo, o)) for o in objectives(slo))

    @property
    def reach_s(self) -> int:
        """How long the values of a signal are kept."""
        return max(QUIET_S, self.for_s)

    @property
    def needs(self) -> Needs:
        """What the signals look back over, besides what they keep themselves."""
        return Needs(
            budgets=self.budgets,
            windows_s=(SAMPLED_S, DAY_S),
            clock=Clock.TTFT,
            recalled_s=self.reach_s,
            slow_s=OWNER_S + self.reach_s,
        )


def evaluations(window_s: float) -> int:
    """How many evaluations of a window must have known a value."""
    return max(1, round(_SEEN * window_s / INTERVAL_S))
