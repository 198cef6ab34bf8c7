"""BATCH_TTFT: a first token on time, promised by a pool where nobody waits for it."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Clock, Slo
from tailburn.rules.lint.finding import Finding, warning
from tailburn.rules.lint.known import Known

CODE: Final = "BATCH_TTFT"
_BATCH_WORDS: Final = ("batch", "offline", "bulk", "background")


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """A batch pool wants completion by a time; a TTFT budget there pages for nobody."""
    if (why := _why_batch(slo)) and Clock.TTFT in slo.clocks:
        yield warning(
            CODE,
            slo,
            f"spec.clocks.{Clock.TTFT}",
            f"a TTFT objective on a batch pool ({why})",
            "nobody waits for the first token of batch work, and its page wakes somebody",
            "promise spec.completion (within, objective) and spec.consistency instead",
        )


def _why_batch(slo: Slo) -> str:
    if slo.is_batch:
        return "spec.completion is set"
    for dimension, value in slo.select.items():
        if any(word in value.lower() for word in _BATCH_WORDS):
            return f"spec.select.{dimension} is {value}"
    return ""
