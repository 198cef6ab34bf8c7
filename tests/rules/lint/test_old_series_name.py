"""Names of older guides."""

from tailburn.engine.slo.model import EngineSource, QuerySource
from tailburn.rules.lint.known import Known
from tailburn.rules.lint.old_series_name import REAL_NAMES, check, in_text
from tests.rules.lint.asked import slo


def test_a_users_query_is_answered_with_the_real_name() -> None:
    source = QuerySource("sum(rate(vllm:ttft_seconds_bucket[{{.window}}]))", "sum(up)")
    (finding,) = check(slo(source=source), Known())
    assert (finding.code, finding.field) == ("OLD_SERIES_NAME", "spec.source.bad")
    assert finding.given == "vllm:ttft_seconds_bucket"
    assert "vllm:time_to_first_token_seconds" in finding.limit


def test_matchers_of_an_engine_are_read_too() -> None:
    source = EngineSource("vllm", {"__name__": "running_queue_size"})
    (finding,) = check(slo(source=source), Known())
    assert "vllm:num_requests_running" in finding.limit


def test_text_is_told_by_line_and_every_name_once_a_line() -> None:
    lines = ["groups:", "  expr: gpu_cache_usage_perc > 0.9 or vllm:gpu_cache_usage_perc > 0.9"]
    found = list(in_text("ours.yml", lines))
    assert [str(f.place) for f in found] == ["ours.yml:2", "ours.yml:2"]
    assert all("vllm:kv_cache_usage_perc" in f.limit for f in found)


def test_no_real_name_is_itself_an_old_one() -> None:
    emitted = {word for real in REAL_NAMES.values() for word in real.split()}
    assert not emitted & set(REAL_NAMES)
    assert not list(in_text("ours.yml", list(REAL_NAMES.values())))
