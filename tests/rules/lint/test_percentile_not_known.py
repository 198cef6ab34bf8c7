"""Percentiles along a dimension that no histogram has."""

from tailburn.rules.lint.known import Known
from tailburn.rules.lint.percentile_not_known import check
from tests.rules.lint.asked import clocks, slo

TTFT = clocks(ttft={"p95": 0.5})


def test_a_dimension_of_the_counters_only_is_found_where_it_is_named() -> None:
    given = slo(clocks=TTFT, by=("gpu", "model"), select={"lora": "fr"})
    select, by = check(given, Known())
    assert (select.code, select.field, select.given) == (
        "PERCENTILE_NOT_KNOWN",
        "spec.select",
        "lora",
    )
    assert (by.field, by.given) == ("spec.by", "gpu")


def test_budgets_alone_need_no_histogram() -> None:
    assert not list(check(slo(by=("gpu",), availability_ratio=0.999), Known()))
    assert not list(check(slo(by=("model",), clocks=TTFT), Known()))
