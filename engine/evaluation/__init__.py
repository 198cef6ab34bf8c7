"""Alerts evaluated in process: the second face of what `rules` writes as PromQL.

`History` is what they look back over, `evaluate` gives their states at a minute and what changed.
"""

from tailburn.engine.evaluation.alerts import (
    AlertKey,
    Flip,
    State,
    Status,
    Watch,
    evaluate,
    history_of,
)
from tailburn.engine.evaluation.history import History

__all__ = ["AlertKey", "Flip", "History", "State", "Status", "Watch", "evaluate", "history_of"]
