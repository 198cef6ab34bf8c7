"""Rules over series that a live Prometheus does not have."""

from tailburn.engine.slo.model import EngineSource, QuerySource
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.series_missing import check
from tests.rules.lint.asked import clocks, known, one, slo

COUNTERS = "group by (objective, definition"
TTFT = "vllm:time_to_first_token_seconds_bucket"


def test_an_objective_that_nobody_counts_is_found() -> None:
    given = slo(availability_ratio=0.999, goodput_ratio=0.95)
    (finding,) = check(given, known({COUNTERS: [one(1, objective="goodput")]}))
    assert (finding.code, finding.field) == ("SERIES_MISSING", "spec.availability")
    assert finding.given == 'tailburn_slo_requests_total{slo="chat", objective="availability"}'


def test_a_by_dimension_that_the_counters_lack_is_found() -> None:
    given = slo(availability_ratio=0.999, by=("model",))
    (finding,) = check(given, known({COUNTERS: [one(1, objective="availability")]}))
    assert (finding.code, finding.given) == ("LABEL_MISSING", "model")


def test_an_engine_that_is_not_scraped_is_told_from_labels_that_do_not_match() -> None:
    given = slo(clocks=clocks(ttft={"p95": 0.5}), source=EngineSource("vllm", {"job": "x"}))
    (finding,) = check(given, known({}))
    assert (finding.code, finding.given) == ("SERIES_MISSING", TTFT)
    (finding,) = check(given, known({f"count({TTFT})": [one(20)]}))
    assert (finding.code, finding.given) == ("LABEL_MISSING", f'{TTFT}{{job="x"}}')
    assert not list(check(given, known({f"count({TTFT}": [one(20)]})))


def test_a_users_total_must_answer_and_its_bad_may_not_have_happened_yet() -> None:
    given = slo(source=QuerySource("rate(b[{{.window}}])", "rate(t[{{.window}}])"))
    total, bad = check(given, known({}))
    assert (total.severity, total.given) == ("error", "rate(t[1h])")
    assert (bad.severity, bad.given) == ("warning", "rate(b[1h])")


def test_without_a_prometheus_nothing_is_found() -> None:
    assert not list(check(slo(availability_ratio=0.999), Known()))
