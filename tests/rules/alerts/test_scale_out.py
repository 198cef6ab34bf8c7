"""Scale-out: p99 TTFT above 80 % of its acceptable p99 for five minutes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.model import ScaleOut
from tailburn.rules.alerting import Kind
from tailburn.rules.alerts.scale_out import alerts
from tailburn.rules.ruleset import build
from tests.rules.promtool import MINUTE_S, fires, histogram, judge, quiet, slo, ttft

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(clocks=ttft(acceptable={"p99": 1.0}), scale_out=ScaleOut())
BOUNDS = {0.5: 0.9, 0.75: 0.95, 1.0: 1.0}  # p99: 0.95 s
WELL = {0.5: 0.99, 0.75: 1.0, 1.0: 1.0}


@pytest.mark.parametrize(("shares", "is_near"), [(BOUNDS, True), (WELL, False)])
def test_a_tail_near_what_is_acceptable_asks_for_replicas(
    shares: dict[float, float],
    is_near: bool,
    need_program: Callable[[str], str],
    tmp_path: Path,
) -> None:
    series = histogram("tailburn_ttft_seconds", {"vantage": "gateway"}, shares, "100x30")
    wanted = fires if is_near else quiet
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        series,
        [quiet(5 * MINUTE_S, Kind.SCALE_OUT), wanted(15 * MINUTE_S, Kind.SCALE_OUT)],
    )


def test_there_is_none_without_an_acceptable_p99() -> None:
    assert not list(alerts(slo(clocks=ttft(acceptable={"p95": 1.0}), scale_out=ScaleOut())))
