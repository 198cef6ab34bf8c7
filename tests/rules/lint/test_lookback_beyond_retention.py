"""Rules that ask for samples which are deleted by then."""

from tailburn.engine.slo.model import Calendar, Regression
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.lookback_beyond_retention import check
from tests.rules.lint.asked import known, slo

DAY_S = 86_400.0


def test_window_and_baseline_are_each_told() -> None:
    given = slo(regression=Regression(days=3))  # its window is 30 days
    window, baseline = check(given, Known(retention_s=2 * DAY_S))
    assert (window.field, window.given) == ("spec.window", "the budget looks back 30d")
    assert window.limit == "Prometheus keeps 2d"
    assert "--storage.tsdb.retention.time=31d" in window.remedy
    assert baseline.given == "the baseline looks back 73h"


def test_what_a_prometheus_keeps_is_asked() -> None:
    assert len(list(check(slo(), known({}, retention_s=15 * DAY_S)))) == 1
    assert not list(check(slo(), known({}, retention_s=31 * DAY_S)))


def test_a_calendar_budget_is_summed_by_the_service() -> None:
    assert not list(check(slo(window=Calendar("quarter")), Known(retention_s=DAY_S)))


def test_unknown_retention_finds_nothing() -> None:
    assert not list(check(slo(), Known()))
    assert not list(check(slo(), known({})))
