"""A threshold above the highest bound."""

from tailburn.engine.slo.model import EngineSource
from tailburn.rules.lint.bucket_missing import check as bucket_missing
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.top_bucket_too_low import check
from tests.rules.lint.asked import clocks, slo

TRITON = EngineSource("triton")


def test_a_threshold_above_all_bounds_is_found_and_told_once() -> None:
    given = slo(clocks=clocks(ttft={"p95": 6.0}), source=TRITON)
    (finding,) = check(given, Known())
    assert (finding.code, finding.given) == ("TOP_BUCKET_TOO_LOW", "6s")
    assert "top bound of nv_inference_first_response_histogram_ms is 5s" in finding.limit
    assert not list(bucket_missing(given, Known()))


def test_the_top_bound_itself_is_well() -> None:
    assert not list(check(slo(clocks=clocks(ttft={"p95": 5.0}), source=TRITON), Known()))
