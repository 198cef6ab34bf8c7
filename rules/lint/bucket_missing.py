"""BUCKET_MISSING: no bound at the objective, so its bad requests are guessed."""

import math
from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.lint.bounds import Bounds, clock_budgets
from tailburn.rules.lint.finding import Finding, error, field_of, span
from tailburn.rules.lint.known import Known

CODE: Final = "BUCKET_MISSING"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Requests over a threshold are counted exactly only at a bound of the histogram."""
    for objective, _, threshold_s, bounds in clock_budgets(slo, known):
        around = bounds.around(threshold_s)
        if around is not None and not _is_bound(threshold_s, bounds):
            low_s, high_s = around
            choices = " or ".join(span(bound) for bound in around if bound)
            yield error(
                CODE,
                slo,
                field_of(objective),
                span(threshold_s),
                f"{bounds.metric} has no bound there ({bounds.said_by}): "
                f"the nearest are {span(low_s)} and {span(high_s)}",
                f"use {choices}, or give the engine this bound",
            )


def _is_bound(threshold_s: float, bounds: Bounds) -> bool:
    return any(math.isclose(bound, threshold_s, rel_tol=1e-9) for bound in bounds.seconds)
