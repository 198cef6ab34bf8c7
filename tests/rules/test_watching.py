"""The rules that look at the service itself, judged by promtool."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tailburn.rules.model import RuleSet
from tailburn.rules.watching import (
    ABSENT,
    NOBODY,
    NOT_READY,
    NOTHING,
    STALLED,
    WATCHDOG,
    watching,
)
from tests.rules.promtool import Asked, judge

pytestmark = pytest.mark.program("promtool")

JOB = '{job="tailburn",instance="a"}'
WELL = {
    f"up{JOB}": "1x40",
    f"tailburn_ready{JOB}": "1x40",
    f"tailburn_tells_people{JOB}": "1x40",
    f"tailburn_evaluation_behind{JOB}": "0x40",
    f"tailburn_evaluation_alerts{JOB}": "7x40",
}
ALL = (ABSENT, NOBODY, NOT_READY, NOTHING, STALLED)


@pytest.mark.parametrize(
    ("series", "fire", "within_minutes"),
    [
        (WELL, (), 40),
        ({**WELL, f"up{JOB}": "1x10 0x30"}, (ABSENT,), 14),
        ({}, (ABSENT,), 4),
        ({**WELL, f"tailburn_ready{JOB}": "1x5 0x35"}, (NOT_READY,), 17),
        ({**WELL, f"tailburn_evaluation_behind{JOB}": "0x5 1x35"}, (STALLED,), 10),
        ({**WELL, f"tailburn_evaluation_alerts{JOB}": "0x40"}, (NOTHING,), 16),
        ({**WELL, f"tailburn_tells_people{JOB}": "1x5 0x35"}, (NOBODY,), 8),
        (
            {**WELL, f"tailburn_tells_people{JOB}": "0x40",
             'tailburn_tells_people{job="tailburn",instance="b"}': "1x40"},
            (), 40,
        ),
    ],
    ids=["well", "down", "gone", "not ready", "stalled", "no SLOs", "nobody tells", "a pair"],
)  # fmt: skip
def test_what_is_wrong_fires_and_nothing_else(
    tmp_path: Path,
    need_program: Callable[[str], str],
    series: dict[str, str],
    fire: Sequence[str],
    within_minutes: int,
) -> None:
    asked = [_firing(name, name in fire, 60 * within_minutes) for name in ALL]
    asked.append(_firing(WATCHDOG, True, 0))
    asked.append(_firing(WATCHDOG, True, 60 * within_minutes))
    judge(need_program("promtool"), tmp_path, RuleSet((watching("tailburn"),)), series, asked)


def _firing(name: str, fires: bool, at_s: int) -> Asked:
    expr = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
    return Asked(at_s, expr, {"{}": 1} if fires else {})
