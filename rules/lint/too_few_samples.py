"""TOO_FEW_SAMPLES: a percentile over so few requests that it is the slowest one."""

import math
from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import QUANTILES, Slo
from tailburn.rules.lint.finding import Finding, span, warning
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.traffic import rate_per_s

CODE: Final = "TOO_FEW_SAMPLES"
PERCENTILE_WINDOW_S: Final = 300.0
CONFIDENCE: Final = 0.95


def samples_needed(quantile: float) -> int:
    """The least n for which n values bound the quantile from above with 95 % confidence.

    The largest of n values lies above it with probability 1 - quantile ** n: 299 for p99.
    """
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(quantile))


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """Percentile rules look at five minutes: the traffic must fill them."""
    rate = rate_per_s(slo, known)
    if rate is None:
        return
    samples = rate * PERCENTILE_WINDOW_S
    for clock, tiers in slo.clocks.items():
        for percentile in sorted({p for tier in tiers.values() for p in tier}):
            needed = samples_needed(QUANTILES[percentile])
            if samples < needed:
                yield warning(
                    CODE,
                    slo,
                    f"spec.clocks.{clock}",
                    f"{percentile} of {samples:.3g} requests in {span(PERCENTILE_WINDOW_S)}",
                    f"{percentile} needs {needed:,} to say anything with 95 % confidence",
                    f"use a lower percentile, fewer `by` dimensions, or rely on the budget: "
                    f"it needs {needed / PERCENTILE_WINDOW_S:.3g} requests/s",
                )
