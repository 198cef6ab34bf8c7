"""What is recorded: rates, burn and budgets, owners, and percentiles along every dimension."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tailburn.engine.evaluation.windows import STRAIGHT_UP_TO_S
from tailburn.engine.names import (
    HOP_LABEL,
    SLO_BAD_RATE_RECORD,
    SLO_BUDGET_LEFT_RECORD,
    SLO_BUDGET_RECORD,
    SLO_BURN_RECORD,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_EXCESS_SHARE_RECORD,
    SLO_LABEL,
    SLO_OWNER_RECORD,
    SLO_PERIOD_BAD_METRIC,
    SLO_PERIOD_REQUESTS_METRIC,
    SLO_SLOW_SECONDS_METRIC,
    SLO_TOTAL_RATE_RECORD,
)
from tailburn.engine.slo import burn
from tailburn.engine.slo.burn import HOUR_S, MINUTE_S
from tailburn.engine.slo.course import Course, Stretch
from tailburn.engine.slo.model import Calendar, Objective, Slo
from tailburn.rules.promql import duration, number, selector
from tailburn.rules.recording.rates import (
    sampled_for,
    sampled_record,
    windows_of,
)
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.testing.counters import counted, levels
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.labels import identity, troubled
from tailburn.rules.testing.unit import Input, Question, UnitTest, sample_name

_STEP_S: Final = MINUTE_S
_MANY_PER_S: Final = 100_000.0
_MONTH_STEP_S: Final = 6 * HOUR_S
_BURN: Final = 0.25


def tests(slo: Slo) -> Iterator[UnitTest]:
    """Steady traffic; a whole window of the budget; and who owns an excess."""
    yield _steady(slo)
    yield _few(slo)
    if isinstance(slo.window, Calendar):
        yield _calendar(slo)
    elif burn.window_s(slo.window) > STRAIGHT_UP_TO_S:
        yield _whole_window(slo)
    if slo.source is None:
        yield _owner(slo)


def _steady(slo: Slo) -> UnitTest:
    """A quarter of each budget is bad, after a time that was good and half as busy."""
    before_s, after_s = 10 * MINUTE_S, 6 * MINUTE_S
    courses = {
        budget.name: Course(
            [
                Stretch(before_s, 0.0, _MANY_PER_S / 2),
                Stretch(after_s, budget.budget_ratio * _BURN, _MANY_PER_S),
            ],
            is_young=True,
        )
        for budget in budgets_of(slo)
    }
    fed = inputs_of(slo, Scrapes(_STEP_S, courses))
    windows = windows_of(slo)
    questions: list[Question] = []
    for window_s in windows.straight():
        for budget in windows.budgets[window_s]:
            if budget.name in fed.objectives:
                questions += _rates(slo, budget, courses[budget.name], window_s)
    for budget in budgets_of(slo):
        if budget.name in fed.objectives:
            questions += _samples(slo, budget, courses[budget.name])
        labels = identity(slo, budget)
        sample = {sample_name(SLO_BUDGET_RECORD, labels): budget.budget_ratio}
        questions.append(Question(before_s + after_s, selector(SLO_BUDGET_RECORD, labels), sample))
    return UnitTest("records of rates and burn", _STEP_S, fed.inputs, tuple(questions))


def _few(slo: Slo) -> UnitTest:
    """One request in two seconds, all of them bad: little traffic has a burn as well."""
    last_s = 10 * MINUTE_S
    course = Course([Stretch(last_s, 1.0, 0.5)], is_young=True)
    fed = inputs_of(slo, Scrapes(_STEP_S, {budget.name: course for budget in budgets_of(slo)}))
    questions = tuple(
        _near(last_s, selector(f"{SLO_BURN_RECORD}{duration(window_s)}", labels), burning, labels)
        for window_s in windows_of(slo).straight()
        for budget in windows_of(slo).budgets[window_s]
        if budget.name in fed.objectives
        for burning in [1 / budget.budget_ratio]
        for labels in [identity(slo, budget) | troubled(slo)]
    )
    return UnitTest("records of little traffic", _STEP_S, fed.inputs, questions)


def _rates(slo: Slo, budget: Objective, course: Course, window_s: int) -> Iterator[Question]:
    window, at_s = duration(window_s), round(course.end_s)
    labels = identity(slo, budget) | troubled(slo)
    total, bad, burning = (
        selector(f"{record}{window}", labels)
        for record in (SLO_TOTAL_RATE_RECORD, SLO_BAD_RATE_RECORD, SLO_BURN_RECORD)
    )
    ratio = course.bad_ratio_in(window_s, at_s)
    assert ratio is not None
    yield _near(at_s, f"{bad} / {total}", ratio, labels)
    yield _near(at_s, burning, ratio / budget.budget_ratio, labels)
    if window_s <= at_s:
        came, _ = course.in_window(np.array([float(at_s)]), window_s)
        yield _near(at_s, total, float(came[0]) / window_s, labels)


def _samples(slo: Slo, budget: Objective, course: Course) -> Iterator[Question]:
    """The sampled rates that long windows are means of."""
    at_s, labels = round(course.end_s), identity(slo, budget) | troubled(slo)
    sampled_s = {sampled_for(w) for w, of in windows_of(slo).budgets.items() if budget in of}
    for window_s in sorted(sampled_s):
        requests, bad = course.in_window(np.array([float(at_s)]), window_s)
        for record, count in ((SLO_TOTAL_RATE_RECORD, requests), (SLO_BAD_RATE_RECORD, bad)):
            name = selector(sampled_record(record, window_s), labels)
            yield _near(at_s, name, float(count[0]) / window_s, labels)


def _near(at_s: int, expr: str, value: float, labels: dict[str, str]) -> Question:
    """It is so within a tenth: a window may begin a scrape later, as it does in Prometheus 3."""
    asked = f"abs({expr} - {number(value)}) < bool {number(value / 10)}"
    return Question(at_s, asked, {sample_name("", labels): 1.0})


def _whole_window(slo: Slo) -> UnitTest:
    """Busy and bad at its begin, then quiet and good: each request weighs the same.

    What came before the window is forgotten.
    """
    window_s = burn.window_s(slo.window)
    step_s = min(_MONTH_STEP_S, window_s // 20 // MINUTE_S * MINUTE_S)
    half_s, before_s = _whole(window_s / 2, step_s), _whole(window_s / 10, step_s)
    rest_s = _whole(window_s - half_s, step_s) + step_s
    asked_s = before_s + half_s + rest_s
    inputs: list[Input] = []
    questions: list[Question] = []
    for budget in budgets_of(slo):
        bad = budget.budget_ratio * 0.8
        stretches = [
            Stretch(before_s, 1.0, 0.5),
            Stretch(half_s, bad, 0.3),
            Stretch(rest_s, 0.0, 0.1),
        ]
        labels = identity(slo, budget) | troubled(slo)
        for record, shares in (
            (SLO_TOTAL_RATE_RECORD, [1.0, 1.0, 1.0]),
            (SLO_BAD_RATE_RECORD, [stretch.bad_ratio for stretch in stretches]),
        ):
            sampled = sampled_record(record, sampled_for(window_s))
            inputs.append(Input(sampled, labels, levels(stretches, shares, step_s)))
        requests = sum(s.for_s * s.requests_per_s for s in stretches[1:])
        failed = sum(s.for_s * s.requests_per_s * s.bad_ratio for s in stretches[1:])
        left = 1 - failed / requests / budget.budget_ratio
        record = selector(SLO_BUDGET_LEFT_RECORD, labels)
        questions.append(_near(asked_s, record, left, labels))
    name = f"what is left of the budget over {slo.window}"
    return UnitTest(name, step_s, tuple(inputs), tuple(questions))


def _calendar(slo: Slo) -> UnitTest:
    """The service's own sums since the period's begin."""
    inputs, questions = [], []
    for budget in budgets_of(slo):
        labels = identity(slo, budget) | troubled(slo)
        bad = round(1_000_000 * budget.budget_ratio * _BURN)
        inputs.append(Input(SLO_PERIOD_REQUESTS_METRIC, labels, "1000000+0x5"))
        inputs.append(Input(SLO_PERIOD_BAD_METRIC, labels, f"{bad}+0x5"))
        left = 1 - bad / 1_000_000 / budget.budget_ratio
        record = selector(SLO_BUDGET_LEFT_RECORD, labels)
        questions.append(_near(5 * MINUTE_S, record, left, labels))
    return UnitTest("what is left of a calendar budget", _STEP_S, tuple(inputs), tuple(questions))


def _owner(slo: Slo) -> UnitTest:
    """The hop with 55 % of the excess owns it; one with 45 % does not."""
    last_s = 10 * MINUTE_S
    own = {SLO_LABEL: slo.name} | troubled(slo)
    stretches = [Stretch(last_s, 0.0, 20 / MINUTE_S)]
    parts = {"queue": 0.55, "prefill": 0.45}
    values = {hop: counted(stretches, [share], _STEP_S, ()) for hop, share in parts.items()}
    inputs = [
        Input(SLO_SLOW_SECONDS_METRIC, own | {HOP_LABEL: hop}, text) for hop, text in values.items()
    ]
    inputs.append(Input(SLO_EXCESS_SECONDS_METRIC, own, counted(stretches, [1.0], _STEP_S, ())))
    named = {sample_name("", own | {HOP_LABEL: hop}): share for hop, share in parts.items()}
    owner = sample_name("", own | {HOP_LABEL: "queue"})
    questions = (
        Question(last_s, f"round({selector(SLO_EXCESS_SHARE_RECORD, own)}, 1e-6)", named),
        Question(last_s, f"round({selector(SLO_OWNER_RECORD, own)}, 1e-6)", {owner: 0.55}),
    )
    return UnitTest("who owns the excess", _STEP_S, tuple(inputs), questions)


def _whole(seconds: float, step_s: int) -> int:
    return max(round(seconds / step_s), 1) * step_s
