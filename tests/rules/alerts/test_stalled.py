"""Stalled queue: requests in flight at every moment, and none gets on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.model import Completion, EngineSource
from tailburn.rules.alerting import Kind
from tailburn.rules.alerts.stalled import patience_s
from tailburn.rules.ruleset import build
from tests.rules.promtool import MINUTE_S, counter, fires, judge, quiet, slo

pytestmark = pytest.mark.program("promtool")

PROMISE = slo(availability_ratio=0.99)
WAITING = 'tailburn_slo_in_flight_requests{slo="chat"}'
DONE = 'tailburn_slo_requests_total{slo="chat",objective="availability",definition="x"}'


@pytest.mark.parametrize(
    ("in_flight", "finished", "is_stalled"),
    [
        ("5x60", "60x20 0x40", True),
        ("5x60", "60x60", False),
        ("0x60", "60x20 0x40", False),
    ],
    ids=["none finishes", "some finish", "nobody waits"],
)
def test_waiting_for_nothing_pages(
    in_flight: str,
    finished: str,
    is_stalled: bool,
    need_program: Callable[[str], str],
    tmp_path: Path,
) -> None:
    value, _, times = in_flight.partition("x")
    series = {WAITING: f"{value}x{times}", DONE: counter(finished)}
    wanted = fires if is_stalled else quiet
    judge(
        need_program("promtool"),
        tmp_path,
        build([PROMISE]),
        series,
        [quiet(20 * MINUTE_S, Kind.STALLED), wanted(40 * MINUTE_S, Kind.STALLED)],
    )


def test_an_engine_that_computes_no_token_pages(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    promise = slo(availability_ratio=0.99, source=EngineSource("vllm"), by=("model",))
    series = {
        'vllm:num_requests_running{model_name="m"}': "1x60",
        'vllm:num_requests_waiting{model_name="m"}': "5x60",
        'vllm:generation_tokens_total{model_name="m"}': counter("900x20 0x40"),
    }
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise]),
        series,
        [quiet(20 * MINUTE_S, Kind.STALLED), fires(40 * MINUTE_S, Kind.STALLED, model="m")],
    )


def test_work_that_may_take_long_is_waited_for() -> None:
    assert patience_s(PROMISE) == 10 * MINUTE_S
    assert patience_s(slo(completion=Completion(1200, 0.95))) == 40 * MINUTE_S
