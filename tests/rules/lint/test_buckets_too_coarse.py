"""Buckets wider than the factor that a rule must see."""

from tailburn.engine.slo.model import EngineSource, Regression
from tailburn.rules.lint.buckets_too_coarse import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, slo

VLLM = EngineSource("vllm")


def test_the_widest_step_at_a_threshold_is_told() -> None:
    acceptable = clocks(ttft={"p95": 0.5, "p99": 2.0})
    given = slo(clocks=acceptable, source=VLLM, regression=Regression())
    (finding,) = check(given, Known())
    assert (finding.code, finding.given) == ("BUCKETS_TOO_COARSE", "1.5")
    assert "steps from 1s to 2.5s" in finding.limit


def test_steps_within_the_ratio_are_well() -> None:
    given = slo(clocks=clocks(ttft={"p95": 1.0}), source=VLLM, regression=Regression(1.34))
    assert not list(check(given, Known()))


def test_without_a_regression_rule_width_does_not_matter() -> None:
    assert not list(check(slo(clocks=clocks(ttft={"p99": 2.0}), source=VLLM), Known()))
