"""So few requests that a handful of failures is an incident."""

from tailburn.rules.lint.budget_too_small import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import slo

GIVEN = slo(availability_ratio=0.999)
LEAST_PER_S = 5 / (0.0144 * 3600)  # five of the 1.44 % of an hour's requests


def test_a_page_for_four_requests_is_found() -> None:
    (finding,) = check(GIVEN, Known(rate_per_s=LEAST_PER_S * 0.8))
    assert (finding.code, finding.field) == ("BUDGET_TOO_SMALL", "spec.availability")
    assert finding.given.startswith("4 bad requests would page: 1.44 %")
    assert "0.096 requests/s" in finding.remedy


def test_a_page_for_five_is_well() -> None:
    assert not list(check(GIVEN, Known(rate_per_s=LEAST_PER_S * 1.001)))
    assert not list(check(GIVEN, Known()))
