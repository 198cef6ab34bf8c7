"""Deadline burn: a tenth of 5 min and 3 % of 30 min, at five and ten misses."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build
from tests.rules.promtool import MINUTE_S, counter, fires, judge, quiet, slo, ttft

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(clocks=ttft(acceptable={"p95": 0.5}))


@pytest.mark.parametrize(
    ("missed", "is_late"),
    [("2x60", False), ("0x40 8x20", True), ("0x58 20x2", False)],
    ids=["few at all times", "many for a while", "many just now"],
)
def test_late_first_tokens_page(
    missed: str, is_late: bool, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = {
        'tailburn_slo_deadline_requests_total{slo="chat"}': counter("60x60"),
        'tailburn_slo_deadline_missed_total{slo="chat"}': counter(missed),
    }
    at_s = 59 * MINUTE_S
    wanted = fires if is_late else quiet
    asked = [wanted(at_s, Kind.DEADLINE), quiet(30 * MINUTE_S, Kind.DEADLINE)]
    judge(need_program("promtool"), tmp_path, build([PROMISE]), series, asked)


def test_a_handful_of_requests_is_too_few(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = {
        'tailburn_slo_deadline_requests_total{slo="chat"}': counter("1x60"),
        'tailburn_slo_deadline_missed_total{slo="chat"}': counter("0.5x60"),
    }
    judge(
        need_program("promtool"), tmp_path, build([PROMISE]), series, [quiet(3000, Kind.DEADLINE)]
    )


def test_an_alert_does_not_stand_beside_its_frozen_self(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = {
        'tailburn_slo_deadline_requests_total{slo="chat"}': counter("60x60 _x30"),
        'tailburn_slo_deadline_missed_total{slo="chat"}': counter("30x60 _x30"),
    }
    minutes = (60, 61, 62, 63, 64, 65, 66, 70, 80)
    asked = [fires(minute * MINUTE_S, Kind.DEADLINE) for minute in minutes]
    judge(need_program("promtool"), tmp_path, build([PROMISE]), series, asked)
