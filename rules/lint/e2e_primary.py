"""E2E_PRIMARY: only the last byte is promised, where the length of the output rules it."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.lint.finding import Finding, warning
from tailburn.rules.lint.known import Known

CODE: Final = "E2E_PRIMARY"
_SHORT: Final = ("completion", "classification", "embedding", "extraction")


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """E2E suits short answers and batch work; for long drafts it measures the question."""
    if Clock.E2E not in slo.clocks or slo.is_batch:
        return
    if slo.select.get("request_type", "") in _SHORT:
        return
    if not {Clock.TTFT, Clock.TPOT, Clock.ITL} & set(slo.clocks):
        yield warning(
            CODE,
            slo,
            f"spec.clocks.{Clock.E2E}",
            "E2E without TTFT or TPOT",
            "E2E is about TTFT + TPOT x output tokens: who asks for longer answers breaks it",
            "add spec.clocks.ttft and spec.clocks.tpot, "
            f"or select a request_type of short answers ({', '.join(_SHORT)})",
        )
