"""All checks at once."""

from pathlib import Path

from tailburn.engine.slo.model import Completion, EngineSource
from tailburn.rules import lint
from tailburn.rules.lint.checks import CHECKS, CODES, lint_text
from tailburn.rules.lint.checks import lint as lint_slos
from tailburn.rules.lint.finding import span
from tailburn.rules.lint.known import Known
from tests.rules.lint.asked import clocks, slo

FOLDER = Path(lint.__file__).parent


def test_a_check_is_a_file_and_a_test_named_by_its_code() -> None:
    for code in CHECKS:
        assert (FOLDER / f"{code.lower()}.py").is_file()
        assert (Path(__file__).parent / f"test_{code.lower()}.py").is_file()


def test_codes_are_told_apart() -> None:
    assert len(set(CODES)) == len(CODES) > len(CHECKS)


def test_a_healthy_slo_has_no_findings() -> None:
    given = slo(availability_ratio=0.999, clocks=clocks(ttft={"p95": 0.5}, tpot={"p95": 0.06}))
    assert not lint_slos([given], Known(rate_per_s=10.0, retention_s=40 * 86_400.0))


def test_a_finding_names_file_field_value_limit_and_remedy() -> None:
    given = slo(clocks=clocks(ttft={"p95": 6.0}), source=EngineSource("triton"), vantage="engine")
    assert [str(f) for f in lint_slos([given], Known())] == [
        "chat.yaml:11: error TOP_BUCKET_TOO_LOW: chat: spec.clocks.ttft.acceptable.p95: 6s: "
        "the top bound of nv_inference_first_response_histogram_ms is 5s (as the engine ships "
        "it): slower requests cannot be told apart; give the engine a bound of 6s, or send spans "
        "to the service"
    ]


def test_a_finding_is_a_flat_row() -> None:
    given = slo(clocks=clocks(ttft={"p95": 1.0}), completion=Completion(60.0, 0.99))
    (row,) = [f.as_row() for f in lint_slos([given], Known())]
    assert (row["code"], row["file"], row["line"]) == ("BATCH_TTFT", "chat.yaml", 11)
    assert all(isinstance(value, str | int) for value in row.values())


def test_text_is_told_in_the_order_of_its_lines() -> None:
    lines = ['x{le="1"}', "vllm:ttft_seconds", 'y{le="2"}']
    found = lint_text("ours.yml", lines, Known())
    assert [f.place.line for f in found] == [1, 2, 3]


def test_spans_are_told_in_the_largest_whole_unit() -> None:
    assert [span(s) for s in (0.4, 1.5, 90, 5400, 86_400, 0.25)] == [
        "400ms", "1.5s", "90s", "90m", "1d", "250ms",
    ]  # fmt: skip
