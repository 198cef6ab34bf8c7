"""The generated rules, evaluated by Prometheus' own engine, fire and end as simulated.

Traffic is heavy in some courses and a few requests a minute in others, where alerts wait until
what is bad is more than chance.
"""

import math
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tailburn.app.rules_files import render
from tailburn.engine.evaluation.windows import STRAIGHT_UP_TO_S
from tailburn.engine.names import SLO_BAD_METRIC, SLO_REQUESTS_METRIC
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S, Pair
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import Slo, objectives
from tailburn.engine.slo.parse import parse
from tailburn.engine.slo.simulate import Effect, firings, held
from tailburn.rules.alerting import Kind
from tailburn.rules.promql import duration, selector
from tailburn.rules.ruleset import alerts_of, build

# A window of a few days: its look-backs are short, so that the history before is short too.
SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec: {vantage: gateway, by: [model], window: 5d, availability: 99%}
"""
BEFORE_S = 13 * HOUR_S  # more than any window
STEP_S = MINUTE_S
LAG_S = 3 * MINUTE_S  # a rate is known one scrape late, and so is the end of a gap
SAMPLED_LAG_S = 12 * MINUTE_S  # rates over 5 min, recorded every 4 min

pytestmark = pytest.mark.program("promtool")


def slo() -> Slo:
    (found,) = parse([("chat.yaml", SLO)]).slos
    return found


def random_course(seed: int) -> Course:
    """Hours of traffic that changes, of incidents, and of gaps in the data."""
    dice = random.Random(seed)
    stretches = [Stretch(float(BEFORE_S), 0.0, 10.0)]
    for _ in range(8):
        for_s = float(dice.randrange(5, 60) * MINUTE_S)
        ratio = dice.choice([0.0, 0.0, 0.02, 0.05, 0.2, 0.6, 1.0])  # none at a threshold
        stretches.append(Stretch(for_s, ratio, dice.choice([5.0, 10.0, 20.0])))
    return Course(stretches)


COURSES = {f"seed {seed}": random_course(seed) for seed in range(3)} | {
    "a gap while it fires": Course(
        [Stretch(float(BEFORE_S), 0.0), Stretch(1800.0, 1.0), gap(7200.0), Stretch(3600.0, 0.0)]
    ),
    "a gap of more than six hours": Course(
        [Stretch(float(BEFORE_S), 0.0), Stretch(1800.0, 1.0), gap(27_000.0), Stretch(60.0, 0.0)]
    ),
    "nobody asks after an outage": Course(
        [Stretch(float(BEFORE_S), 0.0), Stretch(1800.0, 1.0), Stretch(7200.0, 0.0, 0.0)]
    ),
    "young": Course([Stretch(3600.0, 0.0), Stretch(1800.0, 0.2), Stretch(7200.0, 0.0)], True),
}


def few(per_minute: int, bad_ratio: float) -> Course:
    """So many requests a minute, a share of them bad for an hour; sums without dust."""
    rate = per_minute / MINUTE_S
    return Course(
        [
            Stretch(float(BEFORE_S), 0.0, rate),
            Stretch(3600.0, bad_ratio, rate),
            Stretch(7200.0, 0.0, rate),
        ]
    )


FEW = {
    f"{per_minute} a minute, {bad_ratio:.0%} bad": few(per_minute, bad_ratio)
    for per_minute, bad_ratio in [(1, 1.0), (2, 0.5), (1, 0.25), (3, 1.0), (4, 0.25), (12, 0.25)]
}


def test_alerts_fire_as_simulated(tmp_path: Path, need_program: Callable[[str], str]) -> None:
    promtool(slo(), unit_test(COURSES, questions), tmp_path, need_program)


def test_few_requests_fire_alerts_in_the_minute_that_is_simulated(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    promtool(slo(), unit_test(FEW, first_minutes), tmp_path, need_program)


def test_few_requests_delay_every_alert_and_prevent_some() -> None:
    pairs = [alert.pair for alert in alerts_of(slo()) if alert.pair is not None]
    waits = [one for course in FEW.values() for one in held(course, pairs, len(FEW))]
    assert {w.pair for w in waits if w.effect is Effect.DELAYED} == set(pairs)
    assert any(w.effect is Effect.PREVENTED for w in waits)


def promtool(
    slo: Slo, test: Iterator[str], folder: Path, need_program: Callable[[str], str]
) -> None:
    """The rules of an SLO, with a test of them, which must pass."""
    (rules,) = render([slo], "prometheus", None)
    (folder / "chat.rules.yaml").write_text(rules.text)
    (folder / "test.yaml").write_text("\n".join(test))
    ended = subprocess.run(
        [need_program("promtool"), "test", "rules", "test.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_courses_make_alerts_fire_and_end() -> None:
    pairs = [alert.pair for alert in alerts_of(slo()) if alert.pair is not None]
    ended = {
        (firing.pair.severity, firing.pair.long_s)
        for course in COURSES.values()
        for firing in firings(course, pairs)
        if firing.end_s is not None
    }
    assert ended == {(pair.severity, pair.long_s) for pair in pairs}


Asking = Callable[[str, Course, Pair], Iterator[str]]


def unit_test(courses: Mapping[str, Course], asking: Asking) -> Iterator[str]:
    """A file for promtool: each course is a model, and asked what fires on it."""
    yield "rule_files: [chat.rules.yaml]"
    yield "evaluation_interval: 1m"
    yield "group_eval_order:"
    yield from (f"- {group.name}" for group in build([slo()]).groups)
    yield "tests:"
    yield "- interval: 1m"
    yield "  input_series:"
    for model, course in courses.items():
        yield from series(model, course)
    yield "  promql_expr_test:"
    for model, course in courses.items():
        for alert in alerts_of(slo()):
            if alert.pair is not None:
                yield from asking(model, course, alert.pair)


def series(model: str, course: Course) -> Iterator[str]:
    """Both counters of the budget."""
    (objective,) = objectives(slo())
    labels = {
        "slo": "chat",
        "objective": objective.name,
        "definition": definition_of(slo(), objective),
        "model": model,
    }
    for metric, shares in (
        (SLO_REQUESTS_METRIC, [1.0 for _ in course.stretches]),
        (SLO_BAD_METRIC, [stretch.bad_ratio for stretch in course.stretches]),
    ):
        yield f"  - series: '{selector(metric, labels)}'"
        yield f"    values: '{' '.join(counter(course.stretches, shares))}'"


def counter(stretches: Sequence[Stretch], shares: Sequence[float]) -> Iterator[str]:
    """What a counter reads at each scrape; in a gap nothing is counted and nothing scraped."""
    value = 0.0
    yield "0"
    for stretch, share in zip(stretches, shares, strict=True):
        scrapes = round(stretch.for_s / STEP_S)
        if not stretch.is_measured:
            yield f"_x{scrapes}"
            continue
        step = stretch.requests_per_s * share * STEP_S
        yield f"{value + step:.6f}+{step:.6f}x{scrapes - 1}"
        value += step * scrapes


def questions(model: str, course: Course, pair: Pair) -> Iterator[str]:
    """Whether a pair fires: beside every edge, and every ten minutes between."""
    fired = firings(course, [pair], len(COURSES))
    edges = [f.begin_s for f in fired] + [f.end_s for f in fired if f.end_s is not None]
    lag_s = LAG_S if pair.long_s <= STRAIGHT_UP_TO_S else SAMPLED_LAG_S
    begin_s = 0 if course.is_young else BEFORE_S
    beside = (edge_s + by_s for edge_s in edges for by_s in (-lag_s, lag_s))
    asked = {round(at_s / STEP_S) * STEP_S for at_s in beside}
    for at_s in sorted(asked | set(range(begin_s, round(course.end_s), 600))):
        is_near = any(abs(at_s - edge_s) < lag_s - STEP_S for edge_s in edges)
        if is_near or not begin_s < at_s < course.end_s:
            continue
        fires = any(f.begin_s < at_s < (f.end_s or course.end_s + 1) for f in fired)
        yield from question(model, pair, at_s // STEP_S, fires)


def first_minutes(model: str, course: Course, pair: Pair) -> Iterator[str]:
    """The minutes on either side of the first begin; where there is none, that nothing fires.

    Means of sampled rates may be late.
    """
    lag = 0 if pair.long_s <= STRAIGHT_UP_TO_S else SAMPLED_LAG_S // STEP_S
    fired = firings(course, [pair], len(FEW))
    if not fired:
        for minute in range(BEFORE_S // STEP_S, round(course.end_s / STEP_S), 5):
            yield from question(model, pair, minute, False)
        return
    begin = fired[0].begin_s / STEP_S
    yield from question(model, pair, math.ceil(begin) - 1, False)
    yield from question(model, pair, math.floor(begin) + 1 + lag, True)


def question(model: str, pair: Pair, minute: int, fires: bool) -> Iterator[str]:
    windows = {"long": duration(pair.long_s), "short": duration(pair.short_s)}
    alerts = selector("ALERTS", {"alertname": str(Kind.BURN), "model": model, **windows})
    yield f"  - expr: 'count({alerts})'"
    yield f"    eval_time: {minute}m"
    yield "    exp_samples: [{labels: '{}', value: 1}]" if fires else "    exp_samples: []"
