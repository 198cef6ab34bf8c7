"""A percentile over too few samples."""

import pytest

from tailburn.rules.lint.known import Known
from tailburn.rules.lint.too_few_samples import check, samples_needed
from tests.rules.lint.asked import clocks, known, one, slo

TTFT = clocks(ttft={"p95": 0.5, "p99": 1.0})


@pytest.mark.parametrize(
    ("quantile", "needed"), [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299), (0.999, 2995)]
)
def test_the_least_sample_is_the_textbooks(quantile: float, needed: int) -> None:
    assert samples_needed(quantile) == needed


def test_only_the_percentiles_that_lack_samples_are_found() -> None:
    (finding,) = check(slo(clocks=TTFT), Known(rate_per_s=0.5))  # 150 in five minutes
    assert finding.given == "p99 of 150 requests in 5m"
    assert "p99 needs 299" in finding.limit


def test_the_quietest_label_set_of_a_prometheus_counts() -> None:
    asked = known({"(sum by (objective, model) (rate(": [one(50.0), one(0.1)]})
    assert len(list(check(slo(clocks=TTFT, by=("model",)), asked))) == 2


def test_enough_traffic_or_none_known_is_well() -> None:
    assert not list(check(slo(clocks=TTFT), Known(rate_per_s=1.0)))
    assert not list(check(slo(clocks=TTFT), Known()))
