"""So many budgets that nobody reads them."""

from tailburn.rules.lint.by_cardinality import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import known, one, slo


def test_a_dimension_that_grows_with_customers_is_found() -> None:
    (finding,) = check(slo(by=("model", "tenant")), Known())
    assert (finding.code, finding.given) == ("BY_CARDINALITY", "[model, tenant]")
    assert "customers" in finding.limit


def test_pairs_on_a_prometheus_are_counted_instead() -> None:
    sets = [one(1.0, tenant=str(i)) for i in range(101)]
    given = slo(by=("tenant",), availability_ratio=0.999, goodput_ratio=0.95)
    (finding,) = check(given, known({"count by (slo, tenant)": sets}))
    assert "202 pairs" in finding.limit
    assert not list(check(given, known({"count by (slo, tenant)": sets[:100]})))


def test_a_budget_for_each_model_is_well() -> None:
    assert not list(check(slo(by=("model",)), Known()))
