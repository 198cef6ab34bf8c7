"""Promises that the source has no counts for."""

import pytest

from tailburn.engine.slo.model import EngineSource, QuerySource, Slo
from tailburn.rules.lint.budget_not_counted import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, slo

TTFT = clocks(ttft={"p95": 0.5})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (slo(goodput_ratio=0.95, clocks=TTFT, source=EngineSource("vllm")), "spec.goodput"),
        (
            slo(clocks=clocks(tpot={"p95": 0.1}), source=EngineSource("triton")),
            "spec.clocks.tpot.acceptable.p95",
        ),
        (
            slo(availability_ratio=0.99, clocks=TTFT, source=QuerySource("a", "b")),
            "spec.clocks.ttft.acceptable.p95",
        ),
    ],
    ids=["joint clocks", "a clock that the engine lacks", "a clock of two queries"],
)
def test_what_the_source_can_not_count_is_an_error(given: Slo, field: str) -> None:
    (finding,) = check(given, Known())
    assert (finding.code, finding.severity, finding.field) == ("BUDGET_NOT_COUNTED", "error", field)


def test_the_service_counts_all() -> None:
    assert not list(check(slo(goodput_ratio=0.95, clocks=TTFT), Known()))
