"""The signals for autoscalers, worked out each minute with the alerts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation import History
from tailburn.engine.evaluation.history import Needs
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.gauges import AVERAGED_NS, EngineGauges
from tailburn.engine.scaling.signals import Signals, Standing
from tailburn.engine.scaling.terms import OWNER_S, Targets
from tailburn.engine.slo.model import Slo
from tailburn.rules.scaling.signals import terms_of

STALE_NS: Final = 5 * MINUTE_NS
"""What was worked out longer ago is not told as a number: Prometheus lets go of it then, too."""

_S_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class Scaling:
    """The signals of every SLO that scales, as of one minute."""

    minute_ns: int | None = None  # None: none was evaluated yet
    standings: tuple[Standing, ...] = ()

    def is_fresh(self, now_ns: int) -> bool:
        """Whether its numbers may still be told."""
        return self.minute_ns is not None and now_ns - self.minute_ns <= STALE_NS


class ScalingSignals:
    """Of the SLOs whose requests the service counts itself. One thread at a time.

    `reads_gauges`: engines' metrics are read, so that queue and KV cache are waited for.
    """

    def __init__(self, slos: Iterable[Slo], targets: Targets, reads_gauges: bool) -> None:
        found = (terms_of(slo, targets) for slo in slos if slo.source is None)
        self.terms = tuple(terms for terms in found if terms is not None)
        self._reads_gauges = reads_gauges
        self.begin()

    def begin(self) -> None:
        """Know nothing: what follows is over another history."""
        self._signals = Signals(self.terms, self._reads_gauges)

    @property
    def needs(self) -> list[tuple[Slo, Needs]]:
        """What history must reach back to."""
        return self._signals.needs

    @property
    def reach_ns(self) -> int:
        """How long the signals' own values are kept."""
        return self._signals.reach * MINUTE_NS

    @property
    def gauges_back_ns(self) -> int:
        """How far back gauges must be known to work all of them out again."""
        return self.reach_ns + AVERAGED_NS

    @property
    def slow_back_ns(self) -> int:
        """The same of rows of EXCESS."""
        return self.reach_ns + OWNER_S * _S_NS

    def at(self, history: History, gauges: EngineGauges, minute_ns: int) -> Scaling:
        """All of them at a whole minute."""
        replicas = gauges.replicas(minute_ns) if self.terms else {}
        standings = self._signals.at(history, replicas, minute_ns // MINUTE_NS)
        return Scaling(minute_ns, standings)

    def again(self, history: History, gauges: EngineGauges, last_ns: int) -> Scaling:
        """Work out the minutes that lie behind, up to the last that was evaluated."""
        found = Scaling()
        for minute_ns in range(last_ns - self.reach_ns, last_ns + 1, MINUTE_NS):
            found = self.at(history, gauges, minute_ns)
        return found
