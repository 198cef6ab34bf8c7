"""Both faces of every scaling signal: Prometheus' own engine, and the service itself.

The same minutes go through promtool and through `Signals`; at each minute every number must be
the same, and missing where it is missing.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_WAITING_RECORD,
)
from tailburn.engine.scaling.signals import RECORDS, Hold, Standing
from tailburn.engine.scaling.terms import PAST_TOLERANCE, QUIET_S, Targets
from tailburn.engine.slo.model import EngineSource, ScaleOut, Slo
from tailburn.rules.model import RuleSet
from tailburn.rules.ruleset import build
from tailburn.rules.scaling.gauges import Replicas
from tailburn.rules.scaling.signals import group_of
from tests.rules.promtool import Asked, judge, slo, ttft
from tests.rules.scaling.both_faces import Course, Stretch, minutes_of, ours, scraped, series_of

pytestmark = pytest.mark.program("promtool")

GAUGED: Final = (SCALE_WAITING_RECORD, SCALE_KV_RECORD, SCALE_REPLICAS_RECORD, SCALE_HOLD_RECORD)
QUIET: Final = QUIET_S // 60
SETTLED: Final = 3
"""Minutes after which the mean of two minutes of a gauge is the same, whoever reads it."""

CHAT: Final = slo(
    availability_ratio=0.99, clocks=ttft(acceptable={"p99": 1.0}), scale_out=ScaleOut(0.7, 240.0)
)
BY_MODEL: Final = replace(CHAT, by=("model",))
WELL: Final = Stretch(35, 600)
SLOW: Final = Stretch(25, 600, 0.1, 2.0, 0.05, hops={"queue": 70, "prefill": 30})
KERNEL: Final = replace(SLOW, hops={"queue": 20, "decode": 80})
ENGINES: Final = replace(WELL, replicas=4)
COURSES: Final[dict[str, tuple[Slo, Course]]] = {
    "the queue owns it": (CHAT, (WELL, SLOW, replace(WELL, minutes=45))),
    "decode owns it": (CHAT, (WELL, KERNEL, replace(WELL, minutes=45))),
    "nothing tells who owns it": (CHAT, (WELL, replace(SLOW, hops=None), WELL)),
    "one model of two": (BY_MODEL, (WELL, SLOW, KERNEL, replace(WELL, minutes=40))),
    "just above": (CHAT, (WELL, Stretch(20, 3000, 0.1, 0.74, 0.0103), WELL)),
    "a peak": (CHAT, (WELL, replace(SLOW, minutes=1), WELL)),
    "nobody asks": (CHAT, (WELL, SLOW, Stretch(45, 0), WELL)),
    "too few": (CHAT, (Stretch(40, 10, 2.0), WELL)),
    "a gap": (CHAT, (WELL, SLOW, Stretch(20, None), WELL)),
    "data end": (BY_MODEL, (WELL, SLOW, Stretch(20, None))),
    "young and slow": (CHAT, (SLOW, WELL)),
    "engines": (CHAT, (replace(ENGINES, minutes=50),)),
    "a queue": (
        CHAT,
        (ENGINES, replace(ENGINES, minutes=8, waiting=12.0), replace(ENGINES, minutes=50)),
    ),
    "a full cache": (BY_MODEL, (replace(ENGINES, minutes=60, kv_ratio=0.7),)),
    "one replica is left": (CHAT, (ENGINES, replace(ENGINES, minutes=45, replicas=1))),
    "gauges end": (CHAT, (replace(ENGINES, minutes=45), replace(WELL, minutes=45))),
}


def rules(one: Slo, has_engines: bool) -> RuleSet:
    """Those of the SLO, and its signals behind them."""
    replicas = Replicas(one, EngineSource("vllm", {"job": "vllm"})) if has_engines else None
    return RuleSet((*build([one]).groups, group_of(one, Targets(), replicas)))


def asked(one: Slo, course: Course, found: list[Standing]) -> Iterator[Asked]:
    """Every signal at every minute, but for gauges that changed just now, or half an hour ago."""
    seen = minutes_of(course)
    for number, standing in enumerate(found):
        for record in RECORDS:
            ago = (0, QUIET) if record == SCALE_HOLD_RECORD else (0,)
            settled = all(_is_settled(seen, number - minutes) for minutes in ago)
            if settled or record not in GAUGED:
                yield Asked((number + 1) * 60.0, record, dict(_samples(one, standing, record)))


def _is_settled(seen: list[Stretch], number: int) -> bool:
    around = seen[max(number - SETTLED, 0) : max(number + 1, 1)]
    return len({(minute.replicas, minute.waiting, minute.kv_ratio) for minute in around}) == 1


def _samples(one: Slo, standing: Standing, record: str) -> Iterator[tuple[str, float]]:
    for labels in series_of(one):
        values = tuple(labels.values())
        row = standing.by.index(values) if values in standing.by else None
        value = math.nan if row is None else float(standing.values[record][row])
        if not math.isnan(value):
            told = ", ".join(f'{k}="{v}"' for k, v in {"slo": one.name, **labels}.items())
            yield f"{{{told}}}", math.floor(value * 1e6 + 0.5) / 1e6


@pytest.mark.parametrize("course", COURSES)
def test_every_signal_is_the_same_number_as_in_prometheus(
    course: str, need_program: Callable[[str], str], tmp_path: Path
) -> None:
    one, stretches = COURSES[course]
    questions = list(asked(one, stretches, ours(one, stretches)))
    has_engines = any(stretch.replicas for stretch in stretches)
    assert {question.expr for question in questions} == set(RECORDS)
    ruleset, series = rules(one, has_engines), scraped(one, stretches)
    judge(need_program("promtool"), tmp_path, ruleset, series, questions)


def test_no_replica_is_let_go_before_the_rise_of_the_day_before(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    """A day of little traffic, with a rise at the hour that is now ahead."""
    day = 24 * 60
    course = (Stretch(300, 600), Stretch(60, 1800), Stretch(day + 30, 600))
    found = ours(CHAT, course)
    at = [300 + day - 30, 300 + day - 180, 300 + day + 70]
    holds = [found[number].values[SCALE_HOLD_RECORD][0] for number in at]
    assert holds == [1, 0, 0]
    assert found[at[0]].holds[Hold.RISE].all()
    questions = [
        Asked((n + 1) * 60.0, SCALE_HOLD_RECORD, dict(_samples(CHAT, found[n], SCALE_HOLD_RECORD)))
        for n in at
    ]
    judge(need_program("promtool"), tmp_path, rules(CHAT, False), scraped(CHAT, course), questions)


def reached(course: str, record: str) -> set[float]:
    """The values that the first series had at any minute; nan as none."""
    one, stretches = COURSES[course]
    values = [float(standing.values[record][0]) for standing in ours(one, stretches)]
    return {round(value, 2) for value in values if not math.isnan(value)}


def test_what_is_compared_does_speak() -> None:
    """Each signal asks somewhere, gated asks only for the queue, and a replica may go."""
    assert max(reached("the queue owns it", SCALE_GATED_RECORD)) > PAST_TOLERANCE
    assert max(reached("decode owns it", SCALE_OUT_RECORD)) > PAST_TOLERANCE
    assert max(reached("decode owns it", SCALE_GATED_RECORD)) == 1
    assert max(reached("just above", SCALE_OUT_RECORD)) == PAST_TOLERANCE
    assert max(reached("a peak", SCALE_OUT_RECORD)) < 1
    assert max(reached("a queue", SCALE_WAITING_RECORD)) > 1
    assert reached("the queue owns it", SCALE_HOLD_RECORD) == {0, 1}
    assert reached("one replica is left", SCALE_HOLD_RECORD) == {0, 1}
    assert reached("a full cache", SCALE_HOLD_RECORD) == {1}
    assert reached("too few", SCALE_OUT_RECORD) >= {0}


@pytest.mark.parametrize("course", ["data end", "a gap"])
def test_without_data_nothing_is_said(course: str) -> None:
    one, stretches = COURSES[course]
    found = ours(one, stretches)
    in_gap = found[35 + 25 + 15]
    assert all(np.isnan(in_gap.values[record]).all() for record in RECORDS)
    assert set(in_gap.heard.tolist()) == {found[0].now + 35 + 25 + 3}
