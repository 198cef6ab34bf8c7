"""A promise about the few requests that have the clock at all."""

from tailburn.rules.lint.clock_excludes_traffic import check
from tests.rules.lint.asked import clocks, known, one, slo

GIVEN = slo(availability_ratio=0.999, clocks=clocks(ttft={"p95": 0.5}, tpot={"p95": 0.06}))
COUNTED = "sum by (objective) (increase(tailburn_slo_requests_total"
UNMEASURED = "sum by (objective) (increase(tailburn_slo_unmeasured_total"


def test_a_clock_of_less_than_half_of_the_requests_is_found() -> None:
    counted = [
        one(1000, objective="availability"),
        one(499, objective="ttft_p95"),
        one(501, objective="tpot_p95"),
    ]
    (finding,) = check(GIVEN, known({COUNTED: counted}))
    assert (finding.code, finding.field) == (
        "CLOCK_EXCLUDES_TRAFFIC",
        "spec.clocks.ttft.acceptable.p95",
    )
    assert finding.given.startswith("49.9 %")
    assert "not streamed" in finding.limit


def test_lost_telemetry_is_told_from_requests_without_the_clock() -> None:
    counted = [one(1000, objective="availability"), one(100, objective="ttft_p95")]
    asked = known({COUNTED: counted, UNMEASURED: [one(900, objective="ttft_p95")]})
    findings = list(check(GIVEN, asked))
    assert "telemetry is missing" in findings[0].limit


def test_without_traffic_nothing_is_found() -> None:
    assert not list(check(GIVEN, known({})))
