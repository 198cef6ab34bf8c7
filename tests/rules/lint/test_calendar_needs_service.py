"""A calendar budget without the service."""

import pytest

from tailburn.engine.slo.model import Calendar, EngineSource, QuerySource, Source
from tailburn.rules.lint.calendar_needs_service import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import slo


@pytest.mark.parametrize("source", [EngineSource("vllm"), QuerySource("a", "b")])
def test_promql_alone_knows_no_month(source: Source) -> None:
    (finding,) = check(slo(window=Calendar("month"), source=source), Known())
    assert (finding.code, finding.given) == ("CALENDAR_NEEDS_SERVICE", "calendar month (UTC)")


def test_the_service_and_rolling_windows_are_well() -> None:
    assert not list(check(slo(window=Calendar("month")), Known()))
    assert not list(check(slo(source=EngineSource("vllm")), Known()))
