"""Whatever is asked of an engine: nothing is lost, nothing is made of nothing."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine import (
    engine_abort,
    engine_down,
    engine_extend,
    engine_forget,
    engine_set_blocks,
    engine_step,
)
from tailburn.lab.world.engine_make import EngineSettings
from tests.lab.world.engines import (
    MODELS,
    Asked,
    add,
    all_hold,
    blocks_balance,
    drained,
    one,
    run,
    small,
)

MS = 1_000_000
SOME = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    # An example is a seed: it does not shrink to anything that tells more.
    phases=(Phase.explicit, Phase.generate),
)


@st.composite
def asked(draw: st.DrawFn) -> list[Asked]:
    """Up to 60 requests: bursts, shared prefixes, conversations, adapters, grammars."""
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    count, span = draw(st.integers(1, 60)), draw(st.sampled_from([1, 200, 3_000]))
    most = draw(st.sampled_from([40, 700, 3_000]))
    made: list[Asked] = []
    for _ in range(count):
        prompt = int(random.integers(1, most))
        prefix = int(random.integers(0, 4))
        talk = int(random.integers(0, 6)) * (random.random() < 0.5)
        made.append(
            Asked(
                at=int(random.integers(0, span)) * MS,
                prompt=prompt,
                output=int(random.integers(1, 80)),
                prefix=prefix,
                prefix_tokens=int(prompt * random.random()) if prefix else 0,
                tail=100 + talk if talk else 0,
                lora=int(random.integers(-1, 4)),
                priority=int(random.integers(0, 3)),
                structured=int(random.random() < 0.2),
            )
        )
    return made


ENGINES = st.builds(
    small,
    kv_blocks=st.sampled_from([16, 60, 210, 3_000]),
    max_num_seqs=st.sampled_from([1, 5, 40]),
    max_num_batched_tokens=st.sampled_from([64, 2_048]),
    long_prefill_token_threshold=st.sampled_from([0, 50]),
    priority=st.booleans(),
    prefix_cache_blocks=st.sampled_from([-1, 0, 20]),
    watermark_blocks=st.sampled_from([0, 3]),
    reserve_full_prompt=st.booleans(),
    async_scheduling=st.booleans(),
    max_loras=st.just(2),
    max_cpu_loras=st.just(3),
    lora_cold_ns=st.just(400 * MS),
    lora_warm_ns=st.just(5 * MS),
    lora_blocking=st.booleans(),
    grammar_ns=st.just(30 * MS),
    offload_blocks=st.sampled_from([0, 100]),
)


@given(ENGINES, asked(), st.sampled_from(["plain", "drafting"]))
@SOME
def test_blocks_and_lists_balance_after_every_turn(
    engine: EngineSettings, asks: list[Asked], model: str
) -> None:
    run(one(engine, MODELS[model]), asks, all_hold)


@given(ENGINES, asked(), st.sampled_from(["plain", "drafting"]))
@SOME
def test_tokens_in_are_tokens_out(engine: EngineSettings, asks: list[Asked], model: str) -> None:
    e = one(engine, MODELS[model])
    ended = run(e, asks)
    assert sorted(ended) == list(range(len(asks)))
    rep = e.rep[0]
    served = [n for n, row in ended.items() if row[c.END_KIND] == c.FINISHED]
    refused = set(ended) - set(served)
    for n in refused:
        most = asks[n].prompt + ended[n][c.MADE]
        assert ended[n][c.END_KIND] == c.REFUSED
        assert -(-most // engine.block_size) > engine.kv_blocks
    assert all(ended[n][c.MADE] == asks[n].output for n in served)
    assert rep[c.GENERATION_TOKENS] == sum(row[c.MADE] for row in ended.values())
    began = [n for n, row in ended.items() if row[c.PREFILL_END_NS] >= 0]
    assert rep[c.PROMPT_TOKENS] == sum(asks[n].prompt for n in began)
    assert (rep[c.N_ADDED], rep[c.N_FINISHED]) == (len(asks), len(served))
    assert rep[c.N_PREEMPTIONS] == sum(row[c.PREEMPTIONS] for row in ended.values())
    assert rep[c.CLEAN] + rep[c.CACHE] == rep[c.BLOCKS]


@given(ENGINES, asked())
@SOME
def test_each_token_is_computed_once_but_for_what_preemption_cost(
    engine: EngineSettings, asks: list[Asked]
) -> None:
    e = one(engine)
    ended = run(e, asks)
    if any(row[c.END_KIND] != c.FINISHED for row in ended.values()):
        return
    # The last token of an answer is never fed back.
    needed = sum(a.prompt + a.output - 1 for a in asks) - sum(r[c.CACHED] for r in ended.values())
    assert e.rep[0, c.COMPUTED_TOKENS] - e.rep[0, c.RECOMPUTED_TOKENS] <= needed
    if e.rep[0, c.N_PREEMPTIONS] == 0:
        assert e.rep[0, c.COMPUTED_TOKENS] == needed
        assert e.rep[0, c.RECOMPUTED_TOKENS] == 0


@given(ENGINES, asked())
@SOME
def test_instants_follow_each_other(engine: EngineSettings, asks: list[Asked]) -> None:
    for n, row in run(one(engine), asks).items():
        if row[c.END_KIND] != c.FINISHED:
            continue
        path = (c.ADDED_NS, c.QUEUED_NS, c.SCHEDULED_NS, c.PREFILL_END_NS, c.LAST_NS, c.END_NS)
        times = [row[column] for column in path]
        assert times[0] == asks[n].at and times == sorted(times)
        gaps = asks[n].output - 1
        assert (row[c.ITL_MAX_NS] >= 0) == (gaps > 0)
        if gaps:
            assert row[c.ITL_MAX_NS] * gaps >= row[c.LAST_NS] - row[c.PREFILL_END_NS]


@given(ENGINES, asked())
@SOME
def test_an_engine_with_work_works(engine: EngineSettings, asks: list[Asked]) -> None:
    def works(e: c.Engines) -> None:
        rep = e.rep[0]
        if rep[c.RUNNING_COUNT] > 0:
            assert rep[c.BUSY] == 1
        if rep[c.WAITING_COUNT] > 0:
            assert rep[c.NEXT_NS] >= 0

    e = one(engine)
    run(e, asks, works)
    assert e.rep[0, c.BUSY_NS] >= e.real[0, c.EXTRA_SUM]


@given(ENGINES, asked(), st.integers(0, 2**32 - 1))
@SOME
def test_aborts_shrinking_caches_and_deaths_leak_nothing(
    engine: EngineSettings, asks: list[Asked], seed: int
) -> None:
    random, e = np.random.default_rng(seed), one(engine)
    slots = [add(e, ask, 0) for ask in asks]
    for _ in range(200):
        due = int(e.rep[0, c.NEXT_NS])
        now = max(due, int(e.rep[0, c.STEP_START_NS]))
        if due >= 0:
            engine_step(e, 0, due)
        if random.random() < 0.2:
            engine_abort(e, int(random.choice(slots)), now)
        if random.random() < 0.05:
            blocks = int(random.integers(1, 2 * engine.kv_blocks))
            engine_set_blocks(e, 0, blocks, now)
        all_hold(e)
        list(drained(e))
    engine_down(e, 0, int(e.rep[0, c.STEP_START_NS]))
    all_hold(e)
    assert e.rep[0, c.CLEAN] + e.rep[0, c.CACHE] == e.rep[0, c.BLOCKS]
    assert (e.seq[slots, c.STATE] == c.DONE).all()


@given(ENGINES, asked(), st.integers(0, 2**32 - 1))
@SOME
def test_requests_that_are_to_make_more_tokens_make_them(
    engine: EngineSettings, asks: list[Asked], seed: int
) -> None:
    random, e = np.random.default_rng(seed), one(engine)
    wanted = {add(e, ask, 0): ask.output for ask in asks}
    due = 0
    while due >= 0:
        slot = int(random.choice(list(wanted)))
        if random.random() < 0.05 and engine_extend(e, slot, wanted[slot] + 7):
            wanted[slot] += 7
            assert wanted[slot] < 5_000
        due = int(engine_step(e, 0, due))
        all_hold(e)
    served = [slot for slot in wanted if e.seq[slot, c.END_KIND] == c.FINISHED]
    assert all(e.seq[slot, c.MADE] == wanted[slot] for slot in served)


def test_many_small_contents_push_the_oldest_out_and_leave_blocks_to_be_found() -> None:
    e = one(small(kv_blocks=200_000))
    many = e.entries.shape[1] + 500
    at = 0
    for number in range(many):
        slot, due = add(e, Asked(at, 40, 2, tail=number + 1), at), at
        while due >= 0:
            at = due
            due = int(engine_step(e, 0, due))
        list(drained(e))
        engine_forget(e, slot)
    blocks_balance(e)
    again = [add(e, Asked(at, 60, 2, tail=tail), at) for tail in (many, 1)]
    engine_step(e, 0, at)
    assert e.seq[again, c.CACHED].tolist() == [32, 0]


@pytest.fixture
def full() -> Iterator[c.Engines]:
    """An engine whose blocks do not do for what runs."""
    yield one(small(kv_blocks=100, async_scheduling=False))


def test_the_last_to_come_gives_way_and_nobody_is_admitted_in_that_step(full: c.Engines) -> None:
    slots = [add(full, Asked(0, 760, 200), 0) for _ in range(2)]
    late = add(full, Asked(0, 30, 5), 0)
    due = 0
    while full.rep[0, c.N_PREEMPTIONS] == 0:
        due = engine_step(full, 0, due)
    assert full.seq[slots[0], c.STATE] == c.RUNNING
    states = [full.seq[s, c.PREEMPTIONS] for s in (slots[0], slots[1], late)]
    assert states[0] == 0 and sum(states) == 1
    assert full.rep[0, c.RUNNING_COUNT] + full.rep[0, c.WAITING_COUNT] >= 2
