"""Both faces of a stalled queue, of counters that begin again, and of a gap of seven hours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tailburn.engine.evaluation import AlertKey, State, Status, evaluate, history_of
from tailburn.engine.names import SLO_IN_FLIGHT_METRIC, SLO_LABEL
from tailburn.rules.alerting import Kind
from tailburn.rules.promql import selector
from tailburn.rules.ruleset import build, watches_of
from tests.app.verdicts import MINUTE_NS, verdict, verdicts
from tests.rules.parity import BEGIN
from tests.rules.promtool import firing, judge, slo
from tests.rules.test_parity import (
    BY_MODEL,
    Stretch,
    asked,
    ours,
    series_of,
    values_of,
)

pytestmark = pytest.mark.program("promtool")

GAP: Final = (Stretch(60, 600), Stretch(20, 600, 0.8), Stretch(430, None), Stretch(60, 600))
WAITING: Final[dict[str, Any]] = {  # finished a minute, in flight
    "none finishes": [(60, 5)] * 20 + [(0, 5)] * 20 + [(60, 5)] * 10,
    "seen for a moment": [(0, None)] * 15 + [(0, 5)] * 6 + [(60, 5)] * 20,
    "nobody waits": [(60, 5)] * 20 + [(0, 0)] * 25,
    "one is let in": [(60, 5)] * 20 + [(0, 5)] * 7 + [(0, 0)] + [(0, 5)] * 8,
}


@pytest.mark.parametrize("every", [1, 4])
def test_a_gap_of_seven_hours_ends_what_fired_in_both(
    every: int, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    found = ours(BY_MODEL, GAP)
    frozen = {k for s in found for k, state in s.items() if state.status is Status.FROZEN}
    assert frozen
    assert not any(state.status.fires for k, state in found[500].items() if k in frozen)
    questions = list(asked(BY_MODEL, found, every))
    judge(
        need_program("promtool"), tmp_path, build([BY_MODEL]),
        series_of(BY_MODEL, GAP), questions, every * 60,
    )  # fmt: skip


def test_counters_that_begin_again_change_nothing(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    course = (Stretch(120, 600), Stretch(25, 600, 1.0), Stretch(95, 600))
    series = {name: _again(text, 131) for name, text in series_of(BY_MODEL, course).items()}
    questions = list(asked(BY_MODEL, ours(BY_MODEL, course), 1))
    assert any(question.samples for question in questions)
    judge(need_program("promtool"), tmp_path, build([BY_MODEL]), series, questions)


def _again(text: str, at: int) -> str:
    """The counter as it reads when it began again at 0 just after a scrape."""
    values = [int(value) for value in text.split()]
    return " ".join(str(v if i <= at else v - values[at]) for i, v in enumerate(values))


@pytest.mark.parametrize("by", [(), ("model",)], ids=["whole", "by model"])
@pytest.mark.parametrize("course", WAITING)
def test_a_queue_is_stalled_as_in_prometheus(
    course: str, by: tuple[str, ...], need_program: Callable[[str], str], tmp_path: Path
) -> None:
    one = slo(availability_ratio=0.99, by=by)
    watches = watches_of([one])
    history, states = history_of(watches), dict[AlertKey, State]()
    fires: list[bool] = []
    for number, (finished, waiting) in enumerate(WAITING[course]):
        begin_ns = (BEGIN + number) * MINUTE_NS
        history.cover(begin_ns, begin_ns + MINUTE_NS)
        for labels in values_of(one):
            if finished:
                row = verdict(one, "availability", begin_ns, finished, 0, 0, **labels)
                history.take_verdicts(verdicts([row]))
            if waiting is not None:
                told = {tuple(labels.values()): float(waiting)}
                history.take_in_flight(one.name, begin_ns + MINUTE_NS, told)
        states, _ = evaluate(watches, history, states, (), begin_ns + MINUTE_NS)
        stalled = [k for k, s in states.items() if k.alertname == Kind.STALLED and s.status.fires]
        assert len(stalled) in (0, len(values_of(one)))
        fires.append(bool(stalled))
    assert any(fires) == (course == "none finishes")
    changes = (np.flatnonzero(np.diff(fires)) + 1).tolist()
    steps = {c + d for c in changes for d in (-2, 1)} | {1, len(fires) - 1}
    questions = [
        firing((step + 1) * 60.0, len(values_of(one)) * fires[step], Kind.STALLED)
        for step in sorted(steps)
    ]
    stretches = [Stretch(1, finished) for finished, _ in WAITING[course]]
    series = series_of(one, stretches)
    gauge = " ".join(["_", *("_" if w is None else str(w) for _, w in WAITING[course])])
    for labels in values_of(one):
        series[selector(SLO_IN_FLIGHT_METRIC, {SLO_LABEL: one.name} | labels)] = gauge
    judge(need_program("promtool"), tmp_path, build([one]), series, questions)
