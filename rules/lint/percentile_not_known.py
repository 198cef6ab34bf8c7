"""PERCENTILE_NOT_KNOWN: a tier or a baseline of a clock that no histogram tells apart."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.schema import ROLLUP_DIMENSIONS
from tailburn.engine.slo.model import Slo
from tailburn.rules.lint.finding import Finding, warning
from tailburn.rules.lint.known import Known

CODE: Final = "PERCENTILE_NOT_KNOWN"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """The service's histograms have fewer dimensions than its exact counters."""
    if slo.source is not None or not slo.clocks:
        return
    for field, given in (("select", tuple(slo.select)), ("by", slo.by)):
        for dimension in given:
            if dimension not in ROLLUP_DIMENSIONS:
                yield warning(
                    CODE,
                    slo,
                    f"spec.{field}",
                    dimension,
                    "histograms are not kept by it: budgets work, but percentiles, critical "
                    "tiers, regression and scale-out have no rules",
                    f"use one of {', '.join(ROLLUP_DIMENSIONS)}",
                )
