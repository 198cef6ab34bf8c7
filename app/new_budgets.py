"""Alerts of SLOs that were edited while they burned, until their new budgets can be judged.

A new budget has counted nothing yet, and that is not zero: an alert that ended for it would fire
anew a minute later, for the same trouble.
"""

from collections.abc import Mapping
from typing import Final

from tailburn.engine.evaluation import AlertKey, State
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.store.state.versions import Edit, Versions

YOUNG_NS: Final = 10 * MINUTE_NS
"""So long what fired goes on: twice the short window of the quickest pages."""

States = Mapping[AlertKey, State]


class NewBudgets:
    """Which alerts go on as they are, for lack of anything that their new budget says."""

    def __init__(self, versions: Versions, states: States, now_ns: int) -> None:
        """`states` are those that stood when the service began."""
        self._begun = versions.begun(now_ns - YOUNG_NS)
        self.held = {
            key
            for key, state in states.items()
            if state.status.fires and (key.slo, key.objective) in self._begun
        }

    def let_go(self, minute_ns: int) -> list[Edit]:
        """Hold no longer what was held long enough; why it ends, if it ends now."""
        over = {key for key in self.held if not self._is_young(key, minute_ns)}
        self.held -= over
        found = dict.fromkeys((key.slo, key.objective) for key in over)
        return [Edit(*of, old=None, new=self._begun[of].definition) for of in found]

    def judged(self, before: States, after: States) -> None:
        """What the new budget has judged is an alert like any other from then on."""
        self.held = {key for key in self.held if after.get(key) is before.get(key)}

    def _is_young(self, key: AlertKey, minute_ns: int) -> bool:
        return abs(minute_ns - self._begun[key.slo, key.objective].at_ns) < YOUNG_NS
