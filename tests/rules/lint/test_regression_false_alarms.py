"""Today against yesterday alone."""

from tailburn.engine.slo.model import Regression
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.regression_false_alarms import check
from tests.rules.lint.asked import slo


def test_one_day_of_history_is_told_its_false_alarm_rate() -> None:
    (finding,) = check(slo(regression=Regression(days=1)), Known())
    assert finding.code == "REGRESSION_FALSE_ALARMS"
    assert "4 to 15 % of the minutes" in finding.limit


def test_the_median_of_three_days_is_well() -> None:
    assert not list(check(slo(regression=Regression()), Known()))
    assert not list(check(slo(), Known()))
