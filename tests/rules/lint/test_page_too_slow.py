"""All requests are bad, and ten minutes later nobody knows."""

import pytest

from tailburn.rules.lint.known import Known
from tailburn.rules.lint.page_too_slow import check
from tests.rules.lint.asked import clocks, slo


def test_a_page_later_than_ten_minutes_is_an_error() -> None:
    (finding,) = check(slo(availability_ratio=0.5), Known())
    assert (finding.code, finding.severity, finding.field) == (
        "PAGE_TOO_SLOW",
        "error",
        "spec.availability",
    )
    assert finding.given == "a budget of 50 %: no page at all at 100 % bad"


@pytest.mark.parametrize("percentile", ["p90", "p95", "p99"])
def test_percentile_budgets_page_in_time(percentile: str) -> None:
    assert not list(check(slo(clocks=clocks(ttft={percentile: 0.5})), Known()))
