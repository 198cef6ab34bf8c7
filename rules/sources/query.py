"""A user's own two queries, with `{{.window}}` where the range goes."""

import re
from typing import Final

from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_LABEL,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Objective, QuerySource, Slo
from tailburn.rules.model import Rule
from tailburn.rules.promql import by, indented

WINDOW: Final = re.compile(r"\{\{\s*\.window\s*\}\}")


def rates(
    slo: Slo, source: QuerySource, budget: Objective, window: str, suffix: str
) -> tuple[Rule, Rule]:
    """Requests a second and bad ones; no bad series at all counts as none bad."""
    total, bad = (
        f"sum {by(slo.by)} (\n{indented(WINDOW.sub(window, query))}\n)"
        for query in (source.total, source.bad)
    )
    labels = {
        SLO_LABEL: slo.name,
        OBJECTIVE_LABEL: budget.name,
        DEFINITION_LABEL: definition_of(slo, budget),
    }
    return (
        Rule(total, f"{SLO_TOTAL_RATE_RECORD}{window}{suffix}", labels=labels),
        Rule(f"{bad}\nor\n0 * {total}", f"{SLO_BAD_RATE_RECORD}{window}{suffix}", labels=labels),
    )
