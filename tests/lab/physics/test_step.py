"""A step's length: what each cause moves, and what it leaves alone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tailburn.lab.physics import (
    Jitter,
    Layout,
    Speculation,
    StepModel,
    accepted_tokens,
    chunk_pairs,
    jittered_ns,
    prefill_ns,
    step_parts_ns,
    tokens_a_step,
)
from tailburn.lab.physics import coef as c
from tailburn.lab.physics.step import PART_NAMES

DENSE = Layout("Llama-3.1-70B", "H200", 4)
STAGED = Layout("Llama-3.1-70B", "H100", 2, stages=4)
EXPERTS = Layout("Qwen3-235B-A22B", "H200", 4, expert_ranks=8)
DRAFTING = Layout("Llama-3.1-70B", "H200", 4, speculation=Speculation(3, 0.7, 0.9))
LAYOUTS = (DENSE, STAGED, EXPERTS, DRAFTING)

batches = st.integers(1, 256)
contexts = st.integers(1, 16_384)
prompts = st.integers(0, 8_192)


def parts(model: StepModel, batch: int, kv: float, prompt: int, pairs: float) -> dict[str, float]:
    out: NDArray[np.float64] = np.empty(len(PART_NAMES))
    total = step_parts_ns(model.coef, batch, float(kv), prompt, float(pairs), out)
    assert total == pytest.approx(out.sum())
    return dict(zip(PART_NAMES, out.tolist(), strict=True))


@given(layout=st.sampled_from(LAYOUTS), batch=batches, context=contexts, prompt=prompts)
def test_more_work_never_takes_less(layout: Layout, batch: int, context: int, prompt: int) -> None:
    model, kv = StepModel.of(layout), float(batch * context)
    pairs = float(chunk_pairs(prompt, 0))
    length = model.step_ns(batch, kv, prompt, pairs)
    assert 0 < length < 60e9
    # A batch that fills one more stage's slot may only make the stages' hand-over cheaper.
    if layout.stages == 1:
        assert model.step_ns(batch + 1, kv, prompt, pairs) >= length
    assert model.step_ns(batch, kv + 5_000, prompt, pairs) > length
    more = prompt + 100
    assert model.step_ns(batch, kv, more, float(chunk_pairs(more, 0))) > length


@given(layout=st.sampled_from(LAYOUTS), batch=batches, context=contexts, prompt=prompts)
def test_a_step_is_the_sum_of_parts_none_of_them_negative(
    layout: Layout, batch: int, context: int, prompt: int
) -> None:
    found = parts(StepModel.of(layout), batch, batch * context, prompt, chunk_pairs(prompt, 0))
    assert all(value >= 0 for value in found.values())


def test_no_work_takes_no_time() -> None:
    assert StepModel.of(DENSE).step_ns(0, 0.0) == 0.0


# Knob, value, layout, the parts that move. Straggle and bubble are shares of the others.
CAUSES: dict[str, tuple[float, Layout, set[str]]] = {
    "hbm_ratio": (0.8, DENSE, {"gemm", "attention", "elementwise"}),
    "sm_clock_ratio": (0.7, DENSE, {"gemm", "attention", "prefill_attention"}),
    "allreduce_factor": (3.0, DENSE, {"allreduce"}),
    "allreduce_eager": (1.0, DENSE, {"allreduce"}),
    "host_factor": (2.0, DENSE, {"host"}),
    "straggler_ratio": (0.75, DENSE, {"straggle"}),
    "alltoall_factor": (3.0, EXPERTS, {"alltoall"}),
    "expert_skew": (2.0, EXPERTS, {"gemm", "alltoall"}),
    "stage_link_factor": (5.0, STAGED, {"stage_links"}),
    "spec_acceptance": (0.3, DRAFTING, set()),
    "allreduce_jitter": (0.5, DENSE, set()),
}


def test_every_knob_has_its_case() -> None:
    assert set(CAUSES) == set(c.NEUTRAL)


@pytest.mark.parametrize("knob", CAUSES)
def test_a_knob_moves_its_own_parts_only(knob: str) -> None:
    value, layout, moved = CAUSES[knob]
    work = (24, 24 * 1_900.0, 700, float(chunk_pairs(700, 300)))
    well = parts(StepModel.of(layout), *work)
    ill = parts(StepModel.of(layout).with_knobs(**{knob: value}), *work)
    assert {name for name in PART_NAMES if ill[name] > well[name]} == moved
    assert {name for name in PART_NAMES if ill[name] < well[name]} == set()


def test_one_rank_has_no_one_to_wait_for() -> None:
    alone = StepModel.of(Layout("Llama-3.1-8B", "H100", jitter=Jitter(rank_wait=0.02)))
    found = parts(alone.with_knobs(allreduce_factor=9.0, straggler_ratio=0.5), 17, 9_000, 0, 0)
    assert found["allreduce"] == found["straggle"] == 0.0


def test_peers_wait_for_the_slowest_rank_by_its_lag() -> None:
    model = StepModel.of(DENSE)
    found = parts(model.with_knobs(straggler_ratio=0.75), 32, 32 * 1_500, 0, 0)
    assert found["straggle"] == pytest.approx((found["gemm"] + found["attention"]) / 3)


def test_a_lone_sequence_leaves_all_stages_but_one_idle() -> None:
    found = parts(StepModel.of(STAGED), 1, 1_000, 0, 0)
    busy = found["gemm"] + found["attention"] + found["allreduce"] + found["stage_links"]
    assert found["bubble"] > 2.5 * busy
    full = parts(StepModel.of(STAGED), 64, 64_000, 0, 0)
    assert full["bubble"] < 0.15 * sum(full.values())


def test_few_tokens_wake_few_experts() -> None:
    model = StepModel.of(EXPERTS)
    one, many = parts(model, 1, 500, 0, 0)["gemm"], parts(model, 256, 256 * 500, 0, 0)["gemm"]
    assert many > 2 * one


def test_launches_bound_a_step_only_where_the_gpu_is_faster() -> None:
    model = StepModel.of(DENSE)
    slow = model.coef.copy()
    slow[c.HOST_LAUNCH] = 40e6
    assert StepModel(DENSE, slow).step_ns(1, 500.0) == pytest.approx(
        40e6 + slow[c.HOST_STEP] + slow[c.HOST_SEQUENCE]
    )
    long = (8, 8 * 900.0, 8_192, float(chunk_pairs(8_192, 0)))
    assert StepModel(DENSE, slow).step_ns(*long) == pytest.approx(model.step_ns(*long))


@given(tokens=st.integers(1, 20_000), cached=st.integers(0, 20_000), budget=st.integers(64, 9_000))
def test_a_prompt_costs_the_sum_of_its_chunks(tokens: int, cached: int, budget: int) -> None:
    coef = StepModel.of(DENSE).coef
    whole = prefill_ns(coef, tokens, cached, budget)
    if cached >= tokens:
        assert whole == 0.0
    else:
        first = min(budget, tokens - cached)
        rest = prefill_ns(coef, tokens, cached + first, budget)
        alone = prefill_ns(coef, cached + first, cached, budget)
        assert whole == pytest.approx(alone + rest)


@given(before=st.integers(0, 5_000), one=st.integers(1, 4_000), other=st.integers(1, 4_000))
def test_pairs_of_chunks_add_up_to_those_of_the_prompt(before: int, one: int, other: int) -> None:
    parted = chunk_pairs(one, before) + chunk_pairs(other, before + one)
    assert parted == chunk_pairs(one + other, before)


def test_a_token_attends_to_itself_and_all_before_it() -> None:
    assert chunk_pairs(5, 30) == 31 + 32 + 33 + 34 + 35


def test_jitter_has_mean_one_and_its_spread() -> None:
    coef = StepModel.of(Layout("Llama-3.1-8B", "H100", jitter=Jitter(sigma=0.2))).coef
    draws = np.random.default_rng(41)
    drawn = [jittered_ns(coef, 1e6, z, 1.0) / 1e6 for z in draws.standard_normal(20_000)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=0.01)
    assert np.std(np.log(drawn)) == pytest.approx(0.2, rel=0.05)


def test_hold_ups_come_as_often_and_as_long_as_said() -> None:
    often = Jitter(sigma=1e-9, stall_chance=0.25, stall_mean_ms=8.0)
    coef = StepModel.of(Layout("Llama-3.1-8B", "H100", jitter=often)).coef
    draws = np.random.default_rng(42).random(20_000)
    held = np.array([jittered_ns(coef, 1e6, 0.0, u) - 1e6 for u in draws])
    assert np.mean(held > 1.0) == pytest.approx(0.25, abs=0.01)
    assert np.mean(held[held > 1.0]) == pytest.approx(8e6, rel=0.05)


@given(drafts=st.integers(0, 6), acceptance=st.floats(0.0, 1.0))
def test_accepted_drafts_have_the_mean_they_promise(drafts: int, acceptance: float) -> None:
    speculation = Speculation(drafts, acceptance, 0.5)
    coef = StepModel.of(Layout("Llama-3.1-8B", "H100", speculation=speculation)).coef
    evenly: list[Any] = [(i + 0.5) / 2_000 for i in range(2_000)]
    gained = [accepted_tokens(coef, u) for u in evenly]
    assert set(gained) <= set(range(1, drafts + 2))
    assert np.mean(gained) == pytest.approx(tokens_a_step(coef), abs=0.005)
