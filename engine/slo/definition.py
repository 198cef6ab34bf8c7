"""Which definition of an objective a verdict was counted under."""

import hashlib
import json
from dataclasses import asdict

from tailburn.engine.slo.model import Objective, Slo

_DIGITS = 8


def definition_of(slo: Slo, objective: Objective) -> str:
    """8 hex digits over all that decides which requests count and which of them are bad.

    Labels, links, alerts and the other budgets of the SLO are not in it.
    """
    decides = {
        "objective": asdict(objective),
        "select": dict(slo.select),
        "by": slo.by,
        "vantage": slo.vantage,
        "window": [type(slo.window).__name__, asdict(slo.window)],
        "exclude": asdict(slo.exclude),
        "source": [type(slo.source).__name__, asdict(slo.source)] if slo.source else None,
    }
    text = json.dumps(decides, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
