"""Tail regression: against this hour of up to three days, incidents and thin hours left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.model import Regression, Slo
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build
from tests.rules.promtool import DAY_S, HOUR_S, Asked, fires, histogram, judge, quiet, slo, ttft

pytestmark = pytest.mark.program("promtool")

METRIC = "tailburn_ttft_seconds"
FAST = {0.25: 0.5, 0.5: 1.0, 1.0: 1.0, 2.0: 1.0}  # p99: 0.495 s
SLOW = {0.25: 0.0, 0.5: 0.0, 1.0: 0.5, 2.0: 1.0}
SELDOM_S = 300
DAY = 24 * 60


def traffic(fast: str, slow: str) -> dict[str, str]:
    """Fast and slow requests, counted by two replicas."""
    one = histogram(METRIC, {"vantage": "gateway", "replica": "1"}, FAST, fast)
    return one | histogram(METRIC, {"vantage": "gateway", "replica": "2"}, SLOW, slow)


def promise(days: int, **fields: object) -> Slo:
    return slo(clocks=ttft(acceptable={"p50": 9}), regression=Regression(1.5, days), **fields)


def test_a_slow_hour_after_a_well_day_is_a_ticket(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise(1)]),
        traffic(f"140x{DAY} 140x180", f"0x{DAY} 14x60 0x120"),
        [
            quiet(DAY_S, Kind.REGRESSION),
            Asked(
                DAY_S + HOUR_S,
                'tailburn_slo:ttft:p99_baseline{slo="chat"}',
                {'{slo="chat"}': 0.495},
            ),
            fires(DAY_S + HOUR_S, Kind.REGRESSION, objective="ttft_p99"),
            quiet(DAY_S + 2 * HOUR_S, Kind.REGRESSION),
        ],
        SELDOM_S,
    )


@pytest.mark.parametrize(("days", "is_seen"), [(1, False), (3, True)])
def test_yesterdays_incident_hides_nothing_from_the_median_of_three_days(
    days: int, is_seen: bool, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    """The same hour was slow yesterday, and nothing had told so."""
    noon = 12 * 60
    slow = f"0x{DAY} 0x{DAY} 0x{noon} 14x120 0x{noon - 120} 0x{noon} 14x60"
    wanted = fires if is_seen else quiet
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise(days)]),
        traffic(f"140x{3 * DAY + noon + 60}", slow),
        [wanted(3 * DAY_S + 12 * HOUR_S + 3000, Kind.REGRESSION)],
        SELDOM_S,
    )


def test_few_requests_are_no_tail(need_program: Callable[[str], str], tmp_path: Path) -> None:
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise(1)]),
        traffic(f"20x{DAY} 20x120", f"0x{DAY} 10x120"),
        [quiet(DAY_S + HOUR_S, Kind.REGRESSION)],
        SELDOM_S,
    )
