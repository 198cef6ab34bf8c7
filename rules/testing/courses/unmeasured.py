"""Unmeasured: data that end, that never were, and requests that nobody can judge."""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.evaluation.windows import SAMPLED_S
from tailburn.engine.names import SLO_REQUESTS_METRIC, SLO_UNMEASURED_METRIC
from tailburn.engine.slo.burn import MINUTE_S
from tailburn.engine.slo.course import Course, Stretch, gap
from tailburn.engine.slo.model import Slo
from tailburn.rules.alerting import Alert
from tailburn.rules.alerts import unmeasured
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.testing.asking import fires, is_silent
from tailburn.rules.testing.counters import counted
from tailburn.rules.testing.inputs import Scrapes, inputs_of
from tailburn.rules.testing.labels import identity, troubled, well
from tailburn.rules.testing.unit import Input, Question, UnitTest

_STEP_S: Final = MINUTE_S
_MEASURED_S: Final = 10 * MINUTE_S
_MANY_PER_S: Final = 100_000.0


def tests(slo: Slo) -> Iterator[UnitTest]:
    """The three ways in which a budget is not known."""
    found = tuple(unmeasured.alerts(slo))
    gone = [alert for alert in found if alert.long_s == unmeasured.REMEMBERED_S]
    shares = [alert for alert in found if alert.long_s == unmeasured.SHARE_S]
    yield _never(gone)
    yield _ended(slo, gone)
    for word, share, asked in (
        ("over", unmeasured.SHARE_RATIO * 1.03, fires),
        ("under", unmeasured.SHARE_RATIO * 0.97, is_silent),
    ):
        last_s = unmeasured.GONE_FOR_S + 5 * MINUTE_S
        early_s = unmeasured.GONE_FOR_S - 2 * MINUTE_S
        questions = [is_silent(alert, early_s) for alert in shares]
        questions += [asked(alert, last_s) for alert in shares]
        name = f"unmeasured: just {word} the share that nobody can judge"
        yield UnitTest(name, _STEP_S, tuple(_judged(slo, last_s, share)), tuple(questions))


def _never(gone: list[Alert]) -> UnitTest:
    """Not one series: no `by` dimension is known either."""
    questions: list[Question] = []
    for alert in gone:
        questions.append(is_silent(alert, alert.for_s - 2 * MINUTE_S))
        questions.append(fires(alert, alert.for_s + 2 * MINUTE_S, {}))
    return UnitTest("unmeasured: nothing was ever scraped", _STEP_S, (), tuple(questions))


def _ended(slo: Slo, gone: list[Alert]) -> UnitTest:
    end_s = _MEASURED_S + SAMPLED_S
    gap_s = SAMPLED_S + unmeasured.GONE_FOR_S + 5 * MINUTE_S
    course = Course([_good(), gap(gap_s), _good()], is_young=True)
    fed = inputs_of(slo, Scrapes(_STEP_S, {budget.name: course for budget in budgets_of(slo)}))
    all_of_them = [by for by in (troubled(slo), well(slo)) if by is not None]
    questions: list[Question] = []
    for alert in gone:
        if alert.objective in fed.objectives:
            questions.append(is_silent(alert, end_s + alert.for_s - 2 * MINUTE_S))
            questions.append(fires(alert, end_s + alert.for_s + 2 * MINUTE_S, *all_of_them))
            questions.append(is_silent(alert, _MEASURED_S + gap_s + 4 * MINUTE_S))
    return UnitTest(
        "unmeasured: the data end, and come back", _STEP_S, fed.inputs, tuple(questions)
    )


def _judged(slo: Slo, for_s: int, unmeasured_share: float) -> Iterator[Input]:
    stretches = [Stretch(for_s, 0.0, _MANY_PER_S)]
    for budget in budgets_of(slo):
        labels = identity(slo, budget) | troubled(slo)
        for metric, share in (
            (SLO_REQUESTS_METRIC, 1 - unmeasured_share),
            (SLO_UNMEASURED_METRIC, unmeasured_share),
        ):
            yield Input(metric, labels, counted(stretches, [share], _STEP_S, ()))


def _good() -> Stretch:
    return Stretch(_MEASURED_S, 0.0, _MANY_PER_S)
