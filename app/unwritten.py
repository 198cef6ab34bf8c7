"""Evaluations that are not in the state database yet, because it is away.

Alerts are judged on while it is: what they became, and every change of them, waits in memory and
is written in order once it is back. A kill before that loses nothing that was not going to be
evaluated again: the next start goes on behind the last minute that was written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation import AlertKey, Flip, State
from tailburn.engine.store.state.alerts import Alerts

MOST_FLIPS: Final = 100_000
"""About 100 MB. With more of them nothing new is evaluated until some are written."""

States = Mapping[AlertKey, State]


@dataclass(frozen=True)
class Evaluation:
    """What became of alerts in one minute, or in several of which none was written."""

    minute_ns: int
    states: States
    flips: Sequence[Flip]
    covered_since_ns: int | None
    minutes: int = 1

    def after(self, before: "Evaluation | None") -> "Evaluation":
        """With the changes of what was evaluated before it."""
        if before is None:
            return self
        flips, minutes = [*before.flips, *self.flips], before.minutes + self.minutes
        return Evaluation(self.minute_ns, self.states, flips, self.covered_since_ns, minutes)


class Unwritten:
    """Used by one thread."""

    def __init__(self, alerts: Alerts, states: States) -> None:
        """`states`: as they were written last."""
        self._alerts = alerts
        self._written = states
        self._tried: Evaluation | None = None  # failed, and may be there all the same
        self._next: Evaluation | None = None

    @property
    def minutes(self) -> int:
        """How many minutes were evaluated and not written."""
        return sum(evaluation.minutes for evaluation in self._waiting)

    @property
    def is_full(self) -> bool:
        return sum(len(evaluation.flips) for evaluation in self._waiting) >= MOST_FLIPS

    def take(self, evaluation: Evaluation) -> None:
        self._next = evaluation.after(self._next)

    def write(self) -> None:
        """All of it. Raises `DBAPIError`, with everything kept for the next call."""
        if self._tried is not None:
            self._write(self._tried, is_again=True)
        if self._next is not None:
            self._tried, self._next = self._next, None
            self._write(self._tried, is_again=False)

    def _write(self, tried: Evaluation, *, is_again: bool) -> None:
        self._alerts.write(
            tried.minute_ns,
            self._written,
            tried.states,
            tried.flips,
            tried.covered_since_ns,
            is_again=is_again,
        )
        self._written, self._tried = tried.states, None

    @property
    def _waiting(self) -> list[Evaluation]:
        return [one for one in (self._tried, self._next) if one is not None]
