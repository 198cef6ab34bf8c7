"""The time to the last byte as the only promise."""

import pytest

from tailburn.engine.slo.model import Completion, Slo
from tailburn.rules.lint.e2e_primary import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, slo


def test_e2e_alone_is_found() -> None:
    (finding,) = check(slo(clocks=clocks(e2e={"p95": 10.0})), Known())
    assert (finding.code, finding.severity) == ("E2E_PRIMARY", "warning")


@pytest.mark.parametrize(
    "given",
    [
        slo(clocks=clocks(e2e={"p95": 10.0}, ttft={"p95": 0.5})),
        slo(clocks=clocks(e2e={"p95": 10.0}), select={"request_type": "completion"}),
        slo(clocks=clocks(e2e={"p95": 10.0}), completion=Completion(3600.0, 0.99)),
        slo(clocks=clocks(ttft={"p95": 0.5})),
    ],
    ids=["beside TTFT", "short answers", "batch work", "no E2E"],
)
def test_where_length_does_not_rule_it_is_well(given: Slo) -> None:
    assert not list(check(given, Known()))
