"""Counters that went on while nobody read them: what Prometheus makes of it, and what we do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from tailburn.engine.evaluation import AlertKey, State, evaluate, history_of
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import build, watches_of
from tests.app.verdicts import MINUTE_NS, verdict, verdicts
from tests.rules.parity import BEGIN, minutes_of
from tests.rules.promtool import judge
from tests.rules.test_parity import ALL_OF_IT, Stretch, asked, series_of

pytestmark = pytest.mark.program("promtool")


@dataclass(frozen=True)
class Unread(Stretch):
    """The service counts, and its counters are not read until the end of it."""


WELL: Final = Stretch(120, 600)
COURSES: Final = {
    "one scrape fails": (WELL, Unread(2, 600, 1.0), Stretch(30, 600, 0.05), Stretch(60, 600)),
    "four minutes": (WELL, Unread(4, 600, 1.0), Stretch(60, 600, 0.02), Stretch(60, 600)),
    "an outage unseen": (WELL, Unread(25, 600, 1.0), Stretch(150, 600)),
    "on both sides": (WELL, Stretch(9, 600, 0.6), Unread(12, 600, 0.6), Stretch(90, 600, 0.3)),
}


def series(course: tuple[Stretch, ...]) -> dict[str, str]:
    """What was read: nothing at the minutes within an `Unread`."""
    minutes = list(minutes_of(course))
    unread = {
        i + 1
        for i, one in enumerate(minutes[:-1])
        if isinstance(one, Unread) and minutes[i + 1] is one
    }
    found = {}
    for name, values in series_of(ALL_OF_IT, course).items():
        read = ["_" if i in unread else v for i, v in enumerate(values.split())]
        found[name] = " ".join(read)
    return found


def rows(begin: int, requests: int, bad: int) -> pa.Table:
    found = [verdict(ALL_OF_IT, o.name, begin * MINUTE_NS, requests, bad)
             for o in objectives(ALL_OF_IT)]  # fmt: skip
    return verdicts([*found, {**found[-1], "objective": DEADLINE, "definition": ""}])


def ours(course: tuple[Stretch, ...]) -> list[dict[AlertKey, State]]:
    watches = watches_of([ALL_OF_IT])
    history, states = history_of(watches), dict[AlertKey, State]()
    found, at = [states], BEGIN
    history.know(at * MINUTE_NS)
    for stretch in course:
        assert stretch.requests is not None
        bad = round(stretch.requests * stretch.bad_ratio)
        for i in range(1, stretch.minutes + 1):
            now_ns = (at + i) * MINUTE_NS
            if not isinstance(stretch, Unread):
                history.know(now_ns)
                history.take_verdicts(rows(at + i - 1, stretch.requests, bad))
            elif i == stretch.minutes:
                history.know(now_ns)
                missed = rows(at, stretch.requests * i, bad * i)
                history.take_across(missed, np.full(len(missed), now_ns))
            states, _ = evaluate(watches, history, states, (), now_ns)
            found.append(states)
        at += stretch.minutes
    return found


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("course", COURSES)
def test_what_was_counted_while_nobody_read_is_of_the_windows_it_is_of_in_prometheus(
    course: str, every: int, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    found = ours(COURSES[course])
    questions = list(asked(ALL_OF_IT, found, every))
    assert questions
    judge(
        need_program("promtool"), tmp_path, build([ALL_OF_IT]), series(COURSES[course]),
        questions, every * 60,
    )  # fmt: skip


def test_an_outage_that_nobody_read_burns_over_long_windows_alone() -> None:
    burnt = {
        (key.objective, key.long)
        for states in ours(COURSES["an outage unseen"])
        for key, state in states.items()
        if state.status.fires and key.alertname == Kind.BURN
    }
    assert burnt == {("availability", "6h")}
