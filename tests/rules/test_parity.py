"""Both faces of every alert on the counters of budgets: Prometheus' own engine, and ours.

The same minutes go through promtool and through `evaluate`. It is asked on either side of every
change, one evaluation away from it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tailburn.engine.evaluation import AlertKey, State, evaluate, history_of
from tailburn.engine.names import (
    DEFINITION_LABEL,
    OBJECTIVE_LABEL,
    SLO_BAD_METRIC,
    SLO_DEADLINE_MISSED_METRIC,
    SLO_DEADLINE_REQUESTS_METRIC,
    SLO_LABEL,
    SLO_REQUESTS_METRIC,
    SLO_UNMEASURED_METRIC,
)
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.lateness import DEADLINE
from tailburn.engine.slo.model import Clock, Slo, Tier, objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.promql import selector
from tailburn.rules.ruleset import build, watches_of
from tests.app.verdicts import MINUTE_NS, verdict, verdicts
from tests.rules.parity import BEGIN, minutes_of, steps_around
from tests.rules.promtool import Asked, firing, judge, slo

pytestmark = pytest.mark.program("promtool")

COUNTED: Final = (Kind.BURN, Kind.TIER, Kind.DEADLINE, Kind.UNMEASURED)
CLOCKS = {Clock.TTFT: {Tier.ACCEPTABLE: {"p95": 0.5}}}
ALL_OF_IT = slo(availability_ratio=0.99, clocks=CLOCKS)
BY_MODEL = slo(availability_ratio=0.99, clocks=CLOCKS, by=("model",))


@dataclass(frozen=True)
class Stretch:
    """So many minutes alike. `requests` None: the service was down."""

    minutes: int
    requests: int | None
    bad_ratio: float = 0.0
    unmeasured: int = 0


Course = Sequence[Stretch]
WELL = Stretch(120, 600)
COURSES: Final[dict[str, Course]] = {
    "quiet": (Stretch(300, 600, 0.001),),
    "outage": (WELL, Stretch(25, 600, 1.0), Stretch(155, 600)),
    "slow burn": (WELL, Stretch(100, 600, 0.12), Stretch(120, 600)),
    "gap": (WELL, Stretch(20, 600, 0.8), Stretch(40, None), Stretch(100, 600)),
    "nobody asks": (WELL, Stretch(12, 600, 1.0), Stretch(60, 0), Stretch(60, 600)),
    "young": (Stretch(20, 600, 0.5), Stretch(100, 600)),
    "few requests": (Stretch(120, 1), Stretch(30, 1, 1.0), Stretch(60, 1)),
    "unmeasured": (WELL, Stretch(60, 100, unmeasured=300), Stretch(60, 600)),
}


def values_of(slo: Slo) -> tuple[dict[str, str], ...]:
    return ({"model": "a"}, {"model": "b"}) if slo.by else ({},)


def counts_of(one: Stretch, model: str | None) -> tuple[int, int, int]:
    """Requests, bad and unmeasured ones of a minute; the model b is always well."""
    assert one.requests is not None
    bad = 0 if model == "b" else round(one.requests * one.bad_ratio)
    return one.requests, bad, one.unmeasured


def series_of(slo: Slo, course: Course) -> dict[str, str]:
    """The counters as a scrape each minute would have seen them."""
    found = {}
    for by in values_of(slo):
        for index, metrics in enumerate(
            (
                (SLO_REQUESTS_METRIC, SLO_DEADLINE_REQUESTS_METRIC),
                (SLO_BAD_METRIC, SLO_DEADLINE_MISSED_METRIC),
                (SLO_UNMEASURED_METRIC, None),
            )
        ):
            total, text = 0, ["0"]
            for one in minutes_of(course):
                down = one.requests is None
                if not down:
                    total += counts_of(one, by.get("model"))[index]
                text.append("_" if down else str(total))
            values = " ".join(text)
            for objective in objectives(slo):
                labels = {
                    SLO_LABEL: slo.name,
                    OBJECTIVE_LABEL: objective.name,
                    DEFINITION_LABEL: definition_of(slo, objective),
                }
                found[selector(metrics[0], labels | by)] = values
            if metrics[1] is not None:
                found[selector(metrics[1], {SLO_LABEL: slo.name} | by)] = values
    return found


def ours(slo: Slo, course: Course) -> list[dict[AlertKey, State]]:
    """The states at each whole minute; the first is the begin."""
    watches = watches_of([slo])
    history, states = history_of(watches), dict[AlertKey, State]()
    found = [states]
    for number, one in enumerate(minutes_of(course)):
        begin_ns = (BEGIN + number) * MINUTE_NS
        if one.requests is not None:
            history.cover(begin_ns, begin_ns + MINUTE_NS)
            rows = []
            for by in values_of(slo):
                total, bad, unmeasured = counts_of(one, by.get("model"))
                rows += [
                    verdict(slo, o.name, begin_ns, total, bad, unmeasured, **by)
                    for o in objectives(slo)
                ]
                rows.append({**rows[-1], "objective": DEADLINE, "definition": ""})
            if one.requests:
                history.take_verdicts(verdicts(rows))
        states, _ = evaluate(watches, history, states, (), begin_ns + MINUTE_NS)
        found.append(states)
    return found


def asked(slo: Slo, found: list[dict[AlertKey, State]], every: int) -> Iterator[Asked]:
    """On either side of each change, one evaluation away; at begin and end where there is none."""
    watches = {w.key: w for w in watches_of([slo]) if w.interval_s == every * 60}
    for watch in watches.values():
        if watch.key.alertname not in COUNTED:
            continue
        for by in values_of(slo):
            key = watch.key_of(tuple(by.values()))
            fires = np.array([key in s and s[key].status.fires for s in found[::every]], np.bool_)
            for step in steps_around(fires, {1, len(fires) - 1}):
                yield _as_it_is(key, by, step * every * 60.0, int(fires[step]))


def _as_it_is(key: AlertKey, by: dict[str, str], at_s: float, count: int) -> Asked:
    told = {
        "severity": key.severity,
        "objective": key.objective,
        "long": key.long,
        "short": key.short,
        **by,
    }
    labels = {name: value for name, value in told.items() if value}
    return firing(at_s, count, Kind(key.alertname), **labels)


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("course", COURSES)
def test_alerts_on_counters_fire_and_end_as_in_prometheus(
    course: str, every: int, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    one = BY_MODEL if course in ("outage", "gap") else ALL_OF_IT
    found = ours(one, COURSES[course])
    questions = list(asked(one, found, every))
    assert questions
    judge(
        need_program("promtool"),
        tmp_path,
        build([one]),
        series_of(one, COURSES[course]),
        questions,
        every * 60,
    )


def test_what_is_compared_does_fire() -> None:
    fired = {
        Kind(key.alertname)
        for course in COURSES.values()
        for states in ours(ALL_OF_IT, course)
        for key, state in states.items()
        if state.status.fires
    }
    assert fired >= set(COUNTED)
