"""Unmeasured: nothing is counted, or too many requests can't be judged."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build
from tests.rules.promtool import MINUTE_S, counter, fires, firing, judge, quiet, slo

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(availability_ratio=0.99, by=("model",))


def counters(model: str, total: str, unmeasured: str) -> dict[str, str]:
    (budget,) = objectives(PROMISE)
    labels = (
        f'{{slo="chat",objective="availability",definition="{definition_of(PROMISE, budget)}",'
        f'model="{model}"}}'
    )
    return {
        f"tailburn_slo_requests_total{labels}": counter(total),
        f"tailburn_slo_bad_total{labels}": counter(total, 0.0),
        f"tailburn_slo_unmeasured_total{labels}": counter(unmeasured),
    }


def test_an_slo_that_never_had_data_is_told(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        {},
        [quiet(5 * MINUTE_S, Kind.UNMEASURED), fires(15 * MINUTE_S, Kind.UNMEASURED, model="")],
    )


def test_a_model_that_is_gone_is_told_alone(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = counters("a", "60x20 _x40", "0x20 _x40") | counters("b", "60x60", "0x60")
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        series,
        [
            quiet(20 * MINUTE_S, Kind.UNMEASURED),
            firing(45 * MINUTE_S, 1, Kind.UNMEASURED),
            fires(45 * MINUTE_S, Kind.UNMEASURED, model="a", long="1d"),
        ],
    )


def test_too_many_requests_without_their_times_are_told(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    series = counters("a", "60x60", "12x60") | counters("b", "60x60", "3x60")
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        series,
        [
            firing(45 * MINUTE_S, 1, Kind.UNMEASURED),
            fires(45 * MINUTE_S, Kind.UNMEASURED, model="a", long="30m"),
        ],
    )
