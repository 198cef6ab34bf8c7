"""Budgets on an engine's own series: exact at a bucket's bound, under the SLO's own names."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.engine.slo.definition import definition_of
from tailburn.engine.slo.model import EngineSource, Slo, objectives
from tailburn.rules.alerting import Kind
from tailburn.rules.ruleset import alerts_of, build
from tailburn.rules.sources.choose import budgets_of
from tailburn.rules.sources.engine import bound_pattern
from tests.rules.promtool import (
    MINUTE_S,
    Asked,
    counter,
    fires,
    histogram,
    judge,
    quiet,
    slo,
    ttft,
)

pytestmark = pytest.mark.program("promtool")

AT_S = 80 * MINUTE_S


def promise(engine: str, **fields: object) -> Slo:
    """Half a second of TTFT for 99 %, by model."""
    source = EngineSource(engine, {"job": "llm"})  # type: ignore[arg-type]
    return slo(clocks=ttft(acceptable={"p99": 0.5}), source=source, by=("model",), **fields)


def share_of_bad(of: Slo, value: float) -> Asked:
    """The share of bad requests over 5 min at the end, of the only budget and model."""
    (budget,) = budgets_of(of)
    labels = (
        f'definition="{definition_of(of, budget)}",model="m",objective="{budget.name}",slo="chat"'
    )
    expr = f"tailburn_slo:bad:rate5m{{{labels}}} / tailburn_slo:total:rate5m{{{labels}}}"
    return Asked(AT_S, expr, {f"{{{labels}}}": value})


@pytest.mark.parametrize(
    ("engine", "metric", "label", "unit"),
    [
        ("vllm", "vllm:time_to_first_token_seconds", "model_name", 1.0),
        ("sglang", "sglang:time_to_first_token_seconds", "model_name", 1.0),
        ("trtllm", "trtllm_time_to_first_token_seconds", "model_name", 1.0),
        ("triton", "nv_inference_first_response_histogram_ms", "model", 1000.0),
        ("dynamo", "dynamo_frontend_time_to_first_token_seconds", "model", 1.0),
    ],
)
def test_requests_over_the_bound_are_bad(
    engine: str,
    metric: str,
    label: str,
    unit: float,
    need_program: Callable[[str], str],
    tmp_path: Path,
) -> None:
    of = promise(engine)
    labels = {"job": "llm", label: "m"}
    shares = {0.25 * unit: 0.5, 0.5 * unit: 0.8, 1.0 * unit: 1.0}
    series = histogram(metric, labels, shares, "100x90")
    series |= histogram(metric, {**labels, "job": "other"}, {0.5 * unit: 0.0}, "100x90")
    series[f'{metric}_count{{job="llm",{label}="m"}}'] = counter("100x90")
    judge(
        need_program("promtool"),
        tmp_path,
        build([of]),
        series,
        [share_of_bad(of, 0.2), fires(AT_S, Kind.BURN, model="m", long="1h")],
    )


def test_a_threshold_that_is_no_bound_is_unmeasured_not_met(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    metric, labels = "vllm:time_to_first_token_seconds", {"job": "llm", "model_name": "m"}
    series = histogram(metric, labels, {0.25: 0.0, 1.0: 0.0}, "100x90")
    series[f'{metric}_count{{job="llm",model_name="m"}}'] = counter("100x90")
    judge(
        need_program("promtool"),
        tmp_path,
        build([promise("vllm")]),
        series,
        [quiet(AT_S, Kind.BURN), fires(AT_S, Kind.UNMEASURED)],
    )


def test_an_engine_that_never_failed_has_no_bad_requests(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    source = EngineSource("trtllm", {"job": "llm"})
    of = slo(availability_ratio=0.99, source=source, by=("model",))
    success = 'trtllm_request_success_total{job="llm",model_name="m",finished_reason="stop"}'
    failed = 'trtllm_request_error_total{job="llm",model_name="m",http_code="500"}'
    all_well, some_failed = {success: counter("90x90")}, {failed: counter("10x90")}
    for name, series, share in (
        ("well", all_well, 0.0),
        ("failing", all_well | some_failed, 0.1),
    ):
        folder = tmp_path / name
        folder.mkdir()
        judge(need_program("promtool"), folder, build([of]), series, [share_of_bad(of, share)])


def test_what_a_client_gave_up_is_no_failure_of_the_engine(
    need_program: Callable[[str], str], tmp_path: Path
) -> None:
    source = EngineSource("vllm", {"job": "llm"})
    of = slo(availability_ratio=0.99, source=source, by=("model",))
    series = {
        f'vllm:request_success_total{{job="llm",model_name="m",finished_reason="{reason}"}}': values
        for reason, values in (
            ("stop", counter("80x90")),
            ("abort", counter("15x90")),
            ("error", counter("5x90")),
        )
    }
    judge(need_program("promtool"), tmp_path, build([of]), series, [share_of_bad(of, 0.05)])


def test_what_an_engine_can_not_count_has_no_rules() -> None:
    of = promise("vllm", goodput_ratio=0.95)
    assert {budget.name for budget in objectives(of)} == {"goodput", "ttft_p99"}
    assert [budget.name for budget in budgets_of(of)] == ["ttft_p99"]
    assert "goodput" not in {alert.objective for alert in alerts_of(of)}


def test_a_bound_is_found_as_either_release_of_prometheus_writes_it() -> None:
    assert bound_pattern(1.0) == "1(\\.0)?"
    assert bound_pattern(0.5) == "0\\.5"
    assert bound_pattern(500.0) == "500(\\.0)?"
