"""A burn that needs more bad requests than there can be."""

import pytest

from tailburn.rules.lint.known import Known
from tailburn.rules.lint.threshold_unreachable import check
from tests.rules.lint.asked import slo


@pytest.mark.parametrize(
    ("objective", "given", "limit"),
    [
        (0.9, None, None),
        (0.8, "14.4 x 20 % = 288 % bad over 15m", "can never be exceeded"),
        (0.96, None, None),
    ],
)
def test_a_factor_that_was_capped_is_told(
    objective: float, given: str | None, limit: str | None
) -> None:
    findings = list(check(slo(availability_ratio=objective), Known()))
    assert [(f.given, f.limit) for f in findings] == ([(given, limit)] if given else [])
    assert all(f.code == "THRESHOLD_UNREACHABLE" for f in findings)
    assert all("the page is capped at 50 %" in f.remedy for f in findings)


def test_the_textbooks_own_case_is_well() -> None:
    assert not list(check(slo(availability_ratio=0.999), Known()))
    assert not list(check(slo(availability_ratio=0.99), Known()))
