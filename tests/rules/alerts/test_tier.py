"""Tiers: p95 past acceptable is a ticket, p50 past critical a page, from enough requests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build
from tests.rules.promtool import MINUTE_S, counter, fires, histogram, judge, quiet, slo, ttft

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(clocks=ttft(acceptable={"p95": 0.5}, critical={"p50": 1.0}))
VANTAGE = {"vantage": "gateway"}
METRIC = "tailburn_ttft_seconds"


def verdicts(total: str, bad: str) -> dict[str, str]:
    (budget,) = objectives(PROMISE)
    labels = f'slo="chat",objective="ttft_p95",definition="{definition_of(PROMISE, budget)}"'
    return {
        f"tailburn_slo_requests_total{{{labels}}}": counter(total),
        f"tailburn_slo_bad_total{{{labels}}}": counter(bad),
    }


def test_p95_past_acceptable_for_five_minutes_is_a_ticket(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        verdicts("60x60", "2x20 6x20 2x20"),
        [
            quiet(20 * MINUTE_S, Kind.TIER),
            fires(32 * MINUTE_S, Kind.TIER, severity="ticket", objective="ttft_p95"),
            quiet(48 * MINUTE_S, Kind.TIER),
        ],
    )


def test_a_few_slow_requests_are_no_tier(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        verdicts("10x60", "5x60"),
        [quiet(40 * MINUTE_S, Kind.TIER)],
    )


def test_p50_past_critical_is_a_page_within_ten_minutes(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    well = histogram(METRIC, VANTAGE, {0.5: 1, 1: 1, 2: 1}, "100x30 0x30")
    slow = histogram(METRIC, VANTAGE | {"model": "b"}, {0.5: 0, 1: 0, 2: 1}, "0x30 100x30")
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        well | slow,
        [
            quiet(30 * MINUTE_S, Kind.TIER),
            fires(39 * MINUTE_S, Kind.TIER, severity="page", objective="ttft_p50_critical"),
        ],
    )


def test_critical_needs_thirty_requests(need_program: Callable[[str], str], tmp_path: Path) -> None:
    slow = histogram(METRIC, VANTAGE, {0.5: 0, 1: 0, 2: 1}, "5x60")
    judge(need_program("promtool"), tmp_path, build([PROMISE]), slow, [quiet(50 * 60, Kind.TIER)])
