"""Consistency: p99 over p50 of a batch pool's end-to-end times."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.model import Completion
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build
from tests.rules.promtool import HOUR_S, fires, histogram, judge, quiet, slo

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(completion=Completion(600, 0.95), consistency_p99_over_p50=3.0)


@pytest.mark.parametrize(
    ("shares", "is_wide"),
    [({4: 0.6, 5: 0.9, 32: 1.0}, True), ({4: 0.1, 5: 0.9, 8: 1.0}, False)],
    ids=["three seconds and thirty", "five and eight"],
)
def test_a_wide_spread_is_a_ticket(
    shares: dict[float, float],
    is_wide: bool,
    need_program: Callable[[str], str],
    tmp_path: Path,
) -> None:
    series = histogram("tailburn_e2e_seconds", {"vantage": "gateway"}, shares, "20x120")
    wanted = fires if is_wide else quiet
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        series,
        [wanted(2 * HOUR_S - 60, Kind.CONSISTENCY)],
    )
