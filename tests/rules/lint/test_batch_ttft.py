"""A first token on time, promised by a batch pool."""

import pytest

from tailburn.engine.slo.model import Completion, Slo
from tailburn.rules.lint.batch_ttft import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, slo

TTFT = clocks(ttft={"p95": 0.5})


@pytest.mark.parametrize(
    "given",
    [
        slo(clocks=TTFT, completion=Completion(3600.0, 0.99)),
        slo(clocks=TTFT, select={"pool": "Batch-night"}),
        slo(clocks=TTFT, select={"priority": "background"}),
    ],
    ids=["completion", "pool", "priority"],
)
def test_a_batch_pool_with_a_ttft_is_found(given: Slo) -> None:
    (finding,) = check(given, Known())
    assert (finding.code, finding.field) == ("BATCH_TTFT", "spec.clocks.ttft")


@pytest.mark.parametrize(
    "given",
    [
        slo(clocks=TTFT, select={"pool": "interactive"}),
        slo(clocks=clocks(e2e={"p95": 60.0}), completion=Completion(3600.0, 0.99)),
    ],
    ids=["an interactive pool", "a batch pool without TTFT"],
)
def test_else_nothing_is_found(given: Slo) -> None:
    assert not list(check(given, Known()))
