"""TOP_BUCKET_TOO_LOW: a threshold above the highest bound, where all looks equally bad."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.lint.bounds import clock_budgets
from tailburn.rules.lint.finding import Finding, error, field_of, span
from tailburn.rules.lint.known import Known

CODE: Final = "TOP_BUCKET_TOO_LOW"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """A quantile never exceeds the top bound: the alert could not fire."""
    for objective, _, threshold_s, bounds in clock_budgets(slo, known):
        top_s = bounds.seconds[-1]
        if threshold_s > top_s:
            yield error(
                CODE,
                slo,
                field_of(objective),
                span(threshold_s),
                f"the top bound of {bounds.metric} is {span(top_s)} ({bounds.said_by}): "
                "slower requests cannot be told apart",
                f"give the engine a bound of {span(threshold_s)}, or send spans to the service",
            )
