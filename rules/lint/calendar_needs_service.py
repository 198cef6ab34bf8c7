"""CALENDAR_NEEDS_SERVICE: a budget since the begin of the month, which PromQL cannot express."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Calendar, EngineSource, Slo, Source
from tailburn.rules.lint.finding import Finding, error
from tailburn.rules.lint.known import Known

CODE: Final = "CALENDAR_NEEDS_SERVICE"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """A range in PromQL has one length: the service itself sums since the period's begin."""
    if slo.source is not None and isinstance(slo.window, Calendar):
        yield error(
            CODE,
            slo,
            "spec.window",
            str(slo.window),
            f"{_what(slo.source)} know no sum since the begin of a {slo.window.period}",
            "use a rolling window such as 30d, or send spans to the service and drop spec.source",
        )


def _what(source: Source) -> str:
    return f"{source.engine}'s histograms" if isinstance(source, EngineSource) else "queries"
