"""No bound at the objective."""

import pytest

from tailburn.engine.slo.model import EngineSource
from tailburn.rules.lint.bucket_missing import check
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, known, one, slo

VLLM = EngineSource("vllm", {"job": "vllm"})


def test_a_threshold_between_two_bounds_is_told_both() -> None:
    (finding,) = check(slo(clocks=clocks(ttft={"p95": 0.4}), source=VLLM), Known())
    assert (finding.code, finding.severity, finding.given) == ("BUCKET_MISSING", "error", "400ms")
    assert finding.field == "spec.clocks.ttft.acceptable.p95"
    assert finding.remedy.startswith("use 250ms or 500ms")


@pytest.mark.parametrize("threshold_s", [0.5, 1.0])
def test_a_threshold_at_a_bound_is_well(threshold_s: float) -> None:
    given = slo(clocks=clocks(ttft={"p95": threshold_s}), source=VLLM)
    assert not list(check(given, Known()))


def test_the_bounds_of_a_prometheus_count_before_the_shipped_ones() -> None:
    asked = known({'group by (le) (vllm:time_to_first_token_seconds_bucket{job="vllm"': [
        one(1, le="0.4"), one(1, le="8.0"), one(1, le="+Inf")
    ]})  # fmt: skip
    assert not list(check(slo(clocks=clocks(ttft={"p95": 0.4}), source=VLLM), asked))
    (finding,) = check(slo(clocks=clocks(ttft={"p95": 0.5}), source=VLLM), asked)
    assert "on this Prometheus" in finding.limit


def test_milliseconds_are_compared_as_seconds() -> None:
    triton = EngineSource("triton")
    asked = known({"group by (le) (nv_inference_first_response": [one(1, le="500")]})
    assert not list(check(slo(clocks=clocks(ttft={"p95": 0.5}), source=triton), asked))


@pytest.mark.parametrize("source", [None, EngineSource("vllm", histogram="native")])
def test_without_classic_buckets_nothing_is_found(source: EngineSource | None) -> None:
    assert not list(check(slo(clocks=clocks(ttft={"p95": 0.4}), source=source), Known()))
