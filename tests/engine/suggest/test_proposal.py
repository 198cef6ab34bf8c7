"""Thresholds above what was healthy, shares below, and nothing from too little."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailburn.engine.histogram import RELATIVE_ERROR
from tailburn.engine.slo.model import Clock, Kind, Tier, objectives
from tailburn.engine.suggest.proposal import (
    GOODPUT,
    LEAST,
    Proposal,
    lever_of,
    names_of,
    propose,
    round_up,
    thin,
    with_goodput,
)
from tailburn.engine.suggest.seen import Class, Seen
from tests.engine.suggest.rows import healthy

NOTHING: Mapping[str, int] = {}


def seen(*tables: Any, by: tuple[str, ...] = ("model",)) -> list[Class]:
    found = Seen(by, "gateway")
    for table in tables:
        found.take(table)
    return list(found.classes())


def proposed(rows: Any, raised: Mapping[str, int] = NOTHING) -> Proposal:
    [one] = seen(rows)
    return propose(one, "chat", {"model": "llama"}, "gateway", 0.1, raised)


@given(st.floats(1e-4, 5_000))
def test_rounding_goes_up_by_a_tenth_at_most_to_two_digits(seconds: float) -> None:
    told = round_up(seconds)
    assert seconds <= told * (1 + 1e-9) and told <= seconds * 1.1 * (1 + 1e-9)
    digits = f"{told / 10 ** math.floor(math.log10(told) + 1e-12):.6f}".rstrip("0").rstrip(".")
    assert len(digits.replace(".", "")) <= 2
    assert round_up(told) == told


def test_thresholds_stand_a_little_above_the_healthy_percentiles() -> None:
    rows = healthy(20_000, 48)
    found = proposed(rows)
    exact = np.quantile(rows["ttft_gateway_s"].to_numpy(), [0.5, 0.95, 0.99])
    acceptable = found.slo.clocks[Clock.TTFT][Tier.ACCEPTABLE]
    for value, threshold in zip(exact, acceptable.values(), strict=True):
        assert 1.1 * (1 - RELATIVE_ERROR) * value < threshold < 1.35 * value
    bounds = found.clocks[Clock.TTFT].healthy["p95"]
    assert bounds.low < bounds.value < bounds.high
    assert bounds.value == pytest.approx(exact[1], rel=RELATIVE_ERROR)
    assert list(found.slo.clocks) == [Clock.TTFT, Clock.TPOT]


def test_a_step_more_is_a_headroom_more() -> None:
    rows = healthy(20_000, 48)
    p95 = [
        proposed(rows, {"ttft": n}).slo.clocks[Clock.TTFT][Tier.ACCEPTABLE]["p95"] for n in (0, 3)
    ]
    assert p95[1] / p95[0] == pytest.approx(1.4 / 1.1, rel=0.1)


def test_rows_in_parts_give_what_they_give_at_once() -> None:
    rows = healthy(5_000, 30, failed=0.01)
    whole, parts = seen(rows), seen(rows.slice(0, 1_234), rows.slice(1_234))
    for one, other in zip(whole, parts, strict=True):
        assert (one.requests, one.outcomes, one.hours) == (
            other.requests, other.outcomes, other.hours,
        )  # fmt: skip
        assert (one.times[Clock.TTFT].counts == other.times[Clock.TTFT].counts).all()


@pytest.mark.parametrize(
    ("requests", "hours", "is_thin"),
    [(LEAST["p95"] - 1, 48, True), (5_000, 20, True), (3_000, 48, False)],
)
def test_too_few_requests_or_hours_are_thin(requests: int, hours: int, is_thin: bool) -> None:
    [one] = seen(healthy(requests, hours))
    found = thin(one)
    assert (found is not None) == is_thin
    if found is not None:
        assert (found.requests, found.hours) == (requests, hours)


def test_a_percentile_that_too_few_bound_is_not_proposed() -> None:
    assert set(proposed(healthy(2_000, 48)).clocks[Clock.TTFT].healthy) == {"p50", "p95"}


def test_whole_answers_promise_their_end() -> None:
    rows = healthy(5_000, 48, streamed=False, ttft_gateway_s=None, tpot_gateway_s=None)
    assert list(proposed(rows).slo.clocks) == [Clock.E2E]
    few_tokens = proposed(healthy(5_000, 48, output_tokens=8))
    assert list(few_tokens.slo.clocks) == [Clock.TTFT, Clock.E2E]


def test_availability_leaves_room_for_the_failures_that_were_seen() -> None:
    assert proposed(healthy(200_000, 48)).slo.availability_ratio == 0.9999
    assert proposed(healthy(50_000, 48, failed=0.004)).slo.availability_ratio == 0.99
    assert proposed(healthy(5_000, 48, failed=0.5)).slo.availability_ratio is None
    mistakes = proposed(healthy(200_000, 48, outcome="error", http_status=422))
    assert mistakes.slo.exclude.http_status == (422,)


@given(st.integers(0, 1_000), st.integers(0, 3))
def test_goodput_is_a_rung_below_what_was_seen(bad: int, steps: int) -> None:
    found = with_goodput(proposed(ROWS, {Kind.GOODPUT: steps}), bad, 10_000)
    ratio = found.slo.goodput_ratio
    assert ratio is not None and ratio in GOODPUT and 1 - ratio >= 1.1 * bad / 10_000


ROWS = healthy(1_200, 26)


def test_each_budget_has_one_lever() -> None:
    slo = proposed(healthy(20_000, 48)).slo
    assert {o.name: lever_of(o.name) for o in objectives(slo)} == {
        "availability": "availability", "goodput": "goodput", "ttft_p95": "ttft",
        "ttft_p99": "ttft", "tpot_p95": "tpot", "tpot_p99": "tpot",
    }  # fmt: skip
    assert lever_of("ttft_p50_critical") == "ttft"


def test_names_are_names_and_all_different() -> None:
    classes = [("Qwen/Qwen3 32B", "chat"), ("qwen-qwen3-32b", "chat"), ("é", "unknown"), ("?",)]
    assert names_of(classes, "unknown") == [
        "qwen-qwen3-32b-chat", "qwen-qwen3-32b-chat-2", "class", "class-2",
    ]  # fmt: skip
