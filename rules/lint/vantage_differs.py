"""VANTAGE_DIFFERS: an SLO at the gateway that is measured inside the engine."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import EngineSource, Slo
from tailburn.rules.lint.finding import Finding, error
from tailburn.rules.lint.known import Known
from tailburn.rules.sources.engines import engine_of

CODE: Final = "VANTAGE_DIFFERS"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """What lies between the two vantages is felt by users and not seen by the source."""
    if not isinstance(slo.source, EngineSource) or slo.source.relabelled:
        return
    measured_at = engine_of(slo.source).vantage
    if measured_at != slo.vantage:
        yield error(
            CODE,
            slo,
            "spec.vantage",
            slo.vantage,
            f"{slo.source.engine}'s histograms are measured at the {measured_at}: "
            "network, TLS and gateway queues are not in them",
            f"set spec.vantage: {measured_at}, or spec.source.relabelled: true "
            "to have it said in every rule and alert",
        )
