"""Series made for a user's own two queries."""

import pytest

from tailburn.engine.slo.model import QuerySource
from tailburn.rules.testing.query_inputs import query_counters

TOTAL = 'sum(rate(http_requests_total{job="web"}[{{.window}}]))'


def made(bad: str, total: str = TOTAL) -> dict[str, tuple[dict[str, str], list[float]]]:
    """Labels and shares by metric and code."""
    counters = query_counters(QuerySource(bad, total), {}, [0.2])
    return {f"{m} {labels.get('code', '')}".strip(): (labels, list(s)) for m, labels, s in counters}


def test_a_part_of_the_total_is_a_series_beside_the_rest() -> None:
    found = made('sum(rate(http_requests_total{job="web",code=~"5.."}[{{.window}}]))')
    assert found == {
        "http_requests_total 500": ({"job": "web", "code": "500"}, [0.2]),
        "http_requests_total 200": ({"job": "web", "code": "200"}, [0.8]),
    }


def test_another_metric_is_counted_within_the_total() -> None:
    found = made("sum(rate(errors_total[{{ .window }}]))")
    assert found == {
        "errors_total": ({}, [0.2]),
        "http_requests_total": ({"job": "web"}, [1.0]),
    }


@pytest.mark.parametrize(
    "bad",
    [
        "sum(rate(a[{{.window}}])) + sum(rate(b[{{.window}}]))",
        "sum(increase(a[{{.window}}]))",
        'sum(rate(a{code=~"[a-z]{9}x"}[{{.window}}]))',
        TOTAL,
    ],
    ids=["two series", "no rate", "a value nobody guesses", "all of it"],
)
def test_other_queries_are_not_fed(bad: str) -> None:
    assert not made(bad)
