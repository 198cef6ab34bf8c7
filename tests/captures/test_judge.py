"""The judge itself: its truth agrees with the recorders' own figures, and it can say no."""

import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.captures import dynamo, litellm, routers, vllm
from bench.captures.case import Case
from bench.captures.checks import Pair, every, median_within, within
from bench.captures.judge import judge
from bench.captures.recorded import Group, group, read_bodies
from bench.captures.rows import Row, live
from tailburn.engine.names import ttft_hop_column


def groups_of(case: Case, captures: Path) -> list[Group]:
    """The recorded spans of a capture by request, with the requests of its client's log."""
    sent = case.read(case.log_file(captures), case.runs)
    return group(read_bodies(case.spans_folder(captures)), sent)


def waits(case: Case, captures: Path) -> Mapping[str, float]:
    """Median ms of each part of the wait, by the truth alone."""
    assert case.wait is not None
    held: dict[str, list[int]] = {}
    for of_traces in groups_of(case, captures):
        for sent in of_traces.sent:
            parts = case.wait.truth(of_traces.of(sent), sent)
            for part, ns in (parts or {}).items() if sent.phase == case.wait.phase else ():
                held.setdefault(part, []).append(ns)
    return {part: statistics.median(values) / 1e6 for part, values in held.items()}


def test_parts_of_the_vllm_wait_agree_with_the_recorded_breakdown(shipped: Path) -> None:
    written: dict[str, float] = {}
    for line in (shipped / "vllm-0.32.0/wait_breakdown.txt").read_text().splitlines()[1:]:
        name, _, figures = line.strip().partition(" [")
        written[name] = float(figures.split(", ")[1]) * 1e3
    parts = waits(vllm.RUN1, shipped)
    edge = written["client send->gw server span"] + written["gw first body sent->client"]
    assert parts["client and its edge"] == pytest.approx(edge, abs=5)
    assert parts["gateway>engine"] == pytest.approx(written["gw POST->engine arrival"], abs=1)
    assert parts["gateway"] == pytest.approx(
        written["engine first token->gw first body sent"], abs=8
    )


@pytest.mark.parametrize(
    ("case", "part", "recorded_ms"),
    [
        (litellm.V1, "queue", 912),
        (dynamo.RUN1, "worker and its edge", 3257),
        (dynamo.RUN2, "frontend and router", 2953),
        (routers.SMG, "router and its edge", 4010),
        (routers.PRODUCTION_STACK, "engine", 3131 + 102),
        (routers.VLLM_ROUTER, "engine", 2052 + 110),
    ],
    ids=lambda value: value.name if isinstance(value, Case) else str(value),
)
def test_the_wait_lies_where_the_recorders_found_it(
    case: Case, part: str, recorded_ms: int, shipped: Path
) -> None:
    assert waits(case, shipped)[part] == pytest.approx(recorded_ms, rel=0.02)


def test_ids_join_traces_and_only_where_there_are_ids(shipped: Path) -> None:
    def cut(case: Case) -> int:
        return sum(not g.sent and bool(g.having(case.serves)) for g in groups_of(case, shipped))

    assert cut(litellm.V1) == 0
    assert cut(dynamo.RUN2) == 5
    assert cut(routers.SGLANG_RUN1) == 187
    assert cut(routers.SMG) == 0


def test_a_capture_without_rows_fails(shipped: Path) -> None:
    verdict = judge(vllm.RUN1, shipped, [])
    assert not verdict.passed
    assert (verdict.requests, verdict.found) == (126, 0)


def test_a_row_nobody_sent_is_a_surplus(shipped: Path) -> None:
    stray = Row({"request_id": "aa", "trace_id": "bb", "version": 1})
    verdict = judge(replace(vllm.RUN1, wait=None), shipped, [stray])
    assert verdict.extra == 1


def test_a_breakdown_that_misses_its_clock_by_a_nanosecond_is_told() -> None:
    parts = {"ttft_client_s": 0.5, ttft_hop_column("client"): 0.2, ttft_hop_column("decode"): 0.3}
    assert Row(parts).ttft_ns == Row(parts).ttft_parts_ns
    assert Row({**parts, "ttft_client_s": 0.500000001}).ttft_ns != Row(parts).ttft_parts_ns


def test_the_last_version_stands_unless_it_is_a_tombstone() -> None:
    rows: list[dict[str, object]] = [
        {"request_id": "a", "version": 2, "tombstone": False},
        {"request_id": "a", "version": 1, "tombstone": False},
        {"request_id": "b", "version": 1, "tombstone": False},
        {"request_id": "b", "version": 2, "tombstone": True},
    ]
    assert [(row.text("request_id"), row.count("version")) for row in live(rows)] == [("a", 2)]


def test_tolerances_count_nulls_as_wrong_and_shares_as_stated() -> None:
    pairs = [Pair("a", 1.0, 1.001), Pair("b", 1.0, None)]
    assert not within("clock", pairs, 0.002, 0.99, "s").passed
    assert within("clock", pairs, 0.002, 0.5, "s").passed
    assert not median_within("clock", [Pair("a", 1.0, None)], 0.005).passed
    assert not every("rows", 2, ["one is wrong"]).passed
