"""Signals for autoscalers, judged by promtool: what asks for replicas, what lets one go."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tailburn.engine.names import (
    SCALE_GATED_RECORD,
    SCALE_HOLD_RECORD,
    SCALE_KV_RECORD,
    SCALE_OUT_RECORD,
    SCALE_REPLICAS_RECORD,
    SCALE_WAITING_RECORD,
    SLO_EXCESS_SECONDS_METRIC,
    SLO_SLOW_SECONDS_METRIC,
)
from tailburn.engine.slo.model import EngineSource
from tailburn.rules.model import RuleSet
from tailburn.rules.promql import selector
from tailburn.rules.scaling.gauges import Replicas
from tests.rules.promtool import MINUTE_S, Asked, counter, judge
from tests.rules.scaling.courses import CHAT, SLOW, VLLM, WELL, gauges, rules, traffic

pytestmark = pytest.mark.program("promtool")

Judge = Callable[[RuleSet, Mapping[str, str], list[Asked]], None]


@pytest.fixture
def judged(need_program: Callable[[str], str], tmp_path: Path) -> Judge:
    promtool = need_program("promtool")
    return lambda ruleset, series, asked: judge(promtool, tmp_path, ruleset, series, asked)


def shows(minute: int, record: str, value: float) -> Asked:
    return Asked(minute * MINUTE_S, f"sum without (slo) ({record})", {"{}": value})


def is_above_1(minute: int, record: str, count: int = 1) -> Asked:
    return Asked(minute * MINUTE_S, f"count({record} > 1)", {"{}": int(count)} if count else {})


def test_a_tail_that_stays_slow_asks_for_replicas_after_five_minutes(judged: Judge) -> None:
    judged(
        rules(),
        traffic((20, WELL), (40, SLOW)),
        [
            shows(19, f"{SCALE_OUT_RECORD} < bool 0.3", 1),
            is_above_1(23, SCALE_OUT_RECORD, 0),
            is_above_1(35, SCALE_OUT_RECORD),
        ],
    )


def test_a_peak_that_passes_asks_for_none(judged: Judge) -> None:
    peaks = traffic((20, WELL), (1, SLOW), (20, WELL), (1, SLOW), (20, WELL))
    asked = [is_above_1(minute, f"max_over_time({SCALE_OUT_RECORD}[1h])", 0) for minute in (30, 60)]
    judged(rules(), peaks, asked)


def test_a_young_series_asks_for_none_before_it_is_five_minutes_old(judged: Judge) -> None:
    course = traffic((30, SLOW), per_minute=1200)
    judged(rules(), course, [is_above_1(3, SCALE_OUT_RECORD, 0), is_above_1(12, SCALE_OUT_RECORD)])


def test_what_asks_for_replicas_asks_for_more_than_an_autoscaler_tolerates(judged: Judge) -> None:
    just_over = {0.2: 0.5, 0.75: 0.9888, 1.0: 0.994}  # p99: 0.81 s
    judged(rules(), traffic((60, just_over)), [shows(50, SCALE_OUT_RECORD, 1.11)])


def owners(queue_per_minute: int, network_per_minute: int) -> dict[str, str]:
    """The excess of the slow requests by hop."""
    all_of_it = queue_per_minute + network_per_minute
    hops = {"queue": queue_per_minute, "client>gateway": network_per_minute}
    return {
        selector(SLO_EXCESS_SECONDS_METRIC, {"slo": "chat"}): counter(f"{all_of_it}x60"),
        **{
            selector(SLO_SLOW_SECONDS_METRIC, {"slo": "chat", "hop": hop}): counter(f"{rate}x60")
            for hop, rate in hops.items()
        },
    }


@pytest.mark.parametrize(
    ("queue", "network", "asks"), [(60, 40, True), (30, 70, False), (0, 100, False)]
)
def test_gated_asks_only_where_the_queue_owns_the_excess(
    judged: Judge, queue: int, network: int, asks: bool
) -> None:
    series = {**traffic((60, SLOW)), **owners(queue, network)}
    wanted = [is_above_1(50, SCALE_OUT_RECORD), is_above_1(50, SCALE_GATED_RECORD, asks)]
    judged(rules(), series, wanted if asks else [*wanted, shows(50, SCALE_GATED_RECORD, 1)])


def test_gated_asks_where_nothing_tells_who_owns_the_excess(judged: Judge) -> None:
    judged(rules(), traffic((60, SLOW)), [is_above_1(50, SCALE_GATED_RECORD)])


def test_queue_and_cache_are_means_over_the_replicas(judged: Judge) -> None:
    series = {**traffic((60, WELL)), **gauges(60, waiting=10, kv_ratio=0.51, count=3)}
    judged(
        rules(replicas=VLLM),
        series,
        [
            shows(50, SCALE_REPLICAS_RECORD, 3),
            shows(50, SCALE_WAITING_RECORD, 2),
            shows(50, SCALE_KV_RECORD, 0.6),
        ],
    )


SHOWN = {
    "vllm": (
        "vllm:num_requests_waiting{%s}",
        "vllm:kv_cache_usage_perc{%s}",
    ),
    "sglang": ("sglang:num_queue_reqs{%s}", "sglang:token_usage{%s}"),
    "trtllm": ("trtllm_num_requests_waiting{%s}", "trtllm_kv_cache_utilization{%s}"),
    "triton": (
        'nv_trt_llm_request_metrics{request_type="waiting",%s}',
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",%s}',
    ),
    "dynamo": (
        "dynamo_frontend_queued_requests{%s}",
        "dynamo_component_gpu_cache_usage_percent{%s}",
    ),
}


@pytest.mark.parametrize("engine", SHOWN)
def test_the_gauges_of_every_engine_are_read(engine: str, judged: Judge) -> None:
    series = traffic((30, WELL))
    for waiting, kv_ratio, replica in ((4, 0.17, "a:8000"), (16, 0.51, "b:8000")):
        labels = f'job="x",instance="{replica}",model_name="llama",model="llama"'
        for name, value in zip(SHOWN[engine], (waiting, kv_ratio), strict=True):
            series[name % labels] = f"{value}x30"
            series[name % labels.replace('job="x"', 'job="other"')] = "100x30"
    source = EngineSource(engine, {"job": "x"})  # type: ignore[arg-type]
    judged(
        rules(Replicas(CHAT, source)),
        series,
        [
            shows(25, SCALE_REPLICAS_RECORD, 2),
            shows(25, SCALE_WAITING_RECORD, 2),
            shows(25, SCALE_KV_RECORD, 0.4),
        ],
    )


def test_the_older_name_of_a_gauge_is_read_where_the_newer_is_missing(judged: Judge) -> None:
    shown = gauges(30, kv_ratio=0.51)
    older = {name.replace("kv_cache", "gpu_cache"): values for name, values in shown.items()}
    judged(rules(VLLM), {**traffic((30, WELL)), **older}, [shows(25, SCALE_KV_RECORD, 0.6)])


QUIET = {
    "nothing asks for more": ({}, 0),
    "a queue": ({"waiting": 2}, 1),
    "a cache that the others could not take over": ({"kv_ratio": 0.7}, 1),
    "the last replica": ({"count": 1}, 1),
}


@pytest.mark.parametrize(("shown", "hold"), QUIET.values(), ids=QUIET)
def test_a_replica_may_go_after_half_an_hour_of_quiet(
    judged: Judge, shown: dict[str, float], hold: int
) -> None:
    series = {**traffic((90, WELL)), **gauges(90, **shown)}  # type: ignore[arg-type]
    judged(
        rules(replicas=VLLM),
        series,
        [shows(20, SCALE_HOLD_RECORD, 1), shows(80, SCALE_HOLD_RECORD, hold)],
    )


def test_what_scales_out_holds_for_half_an_hour(judged: Judge) -> None:
    course = traffic((60, WELL), (15, SLOW), (60, WELL))
    asked = [shows(minute, SCALE_HOLD_RECORD, 0) for minute in (58, 115)]
    judged(rules(), course, [*asked, *(shows(m, SCALE_HOLD_RECORD, 1) for m in (70, 90, 104))])


def test_too_few_requests_ask_for_none_and_hold_none(judged: Judge) -> None:
    night = traffic((90, SLOW), per_minute=10)  # 50 in five minutes: no p99
    judged(rules(), night, [shows(80, SCALE_OUT_RECORD, 0), shows(80, SCALE_HOLD_RECORD, 0)])


def test_without_data_there_is_no_signal(judged: Judge) -> None:
    gone = {name: f"{values} {'_ ' * 40}" for name, values in traffic((30, SLOW)).items()}
    none = [Asked(60 * MINUTE_S, r, {}) for r in (SCALE_OUT_RECORD, SCALE_HOLD_RECORD)]
    judged(rules(), gone, none)


def test_no_replica_goes_before_the_rise_that_came_a_day_ago(judged: Judge) -> None:
    """A day of little traffic, with a rise at the same hour that is now ahead."""
    day = 24 * 60
    steady, rising = 600, 1800
    course = {
        name: counter(f"{steady}x600 {rising}x60 {steady}x{day}")
        for name in traffic((1, WELL))
        if not name.startswith("tailburn_ttft") or 'le="+Inf"' in name or 'le="0.2"' in name
    }
    before_it = 600 + day - 30
    judged(
        rules(),
        course,
        [shows(before_it - 180, SCALE_HOLD_RECORD, 0), shows(before_it, SCALE_HOLD_RECORD, 1)],
    )
