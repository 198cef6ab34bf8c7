"""Versions of a budget: a short name for all that decides which requests are bad in it."""

import hashlib
import json
from dataclasses import asdict
from typing import Any, Final

from tailburn.engine.slo.model import Kind, Objective, Slo, Tier
from tailburn.engine.slo.verdicts import GOODPUT_PERCENTILE

# Raised when a clock or a verdict comes to mean something else in the program itself.
_MEANING: Final = 1
_DIGITS: Final = 8


def definition_of(slo: Slo, objective: Objective) -> str:
    """Eight hex digits, others as soon as one budget would mix two ways of counting.

    They change with the objective, its threshold, the window, the selection, `by`, the vantage,
    the exclusions and the source; not with names, labels, links or other objectives.
    """
    said: dict[str, Any] = {
        "meaning": _MEANING,
        "objective": asdict(objective),
        "select": dict(slo.select),
        "by": sorted(slo.by),
        "vantage": slo.vantage,
        "window": [type(slo.window).__name__, asdict(slo.window)],
        "exclude": {
            "cancelled_by_client": slo.exclude.cancelled_by_client,
            "http_status": sorted(slo.exclude.http_status),
            "where": sorted(sorted(where.items()) for where in slo.exclude.where),
        },
        "source": None if slo.source is None else asdict(slo.source),
    }
    if objective.kind is Kind.GOODPUT:
        said["joins"] = {
            clock: tiers.get(Tier.ACCEPTABLE, {}).get(GOODPUT_PERCENTILE)
            for clock, tiers in slo.clocks.items()
        }
    text = json.dumps(said, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
