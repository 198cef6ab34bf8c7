"""REGRESSION_FALSE_ALARMS: today against yesterday alone, which healthy days break as well."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.model import Slo
from tailburn.rules.lint.finding import Finding, warning
from tailburn.rules.lint.known import Known

CODE: Final = "REGRESSION_FALSE_ALARMS"


def check(slo: Slo, known: Known) -> Iterator[Finding]:
    """The figures are from a week of real arrivals without a fault, at 10 requests/s."""
    if slo.regression is not None and slo.regression.days == 1:
        yield warning(
            CODE,
            slo,
            "spec.regression.days",
            "1",
            "against yesterday's hour alone, 4 to 15 % of the minutes of a healthy week are "
            "worse than 1.5 times (11 to 14 alarms a day), and an incident yesterday hides today's",
            "leave it out: the median of 3 days is used",
        )
