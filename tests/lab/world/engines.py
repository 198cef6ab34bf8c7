"""Engines with random requests, run to their end or to an instant, and what must hold then."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tailburn.lab.physics import Layout, StepModel
from tailburn.lab.physics.layout import Speculation
from tailburn.lab.world import engine_layout as c
from tailburn.lab.world.engine import engine_add, engine_forget, engine_step
from tailburn.lab.world.engine_make import EngineSettings, make_engines

PLAIN = EngineSettings(kv_blocks=2_000, kv_bytes_per_token=131_072)
MODEL = StepModel.of(Layout("Llama-3.1-8B", "H100", weights="bf16"))
DRAFTING = StepModel.of(
    Layout("Llama-3.1-8B", "H100", weights="bf16", speculation=Speculation(tokens=3))
)
MODELS = {"plain": MODEL, "drafting": DRAFTING}


@dataclass(frozen=True)
class Asked:
    """One request, with the defaults of `engine_add`."""

    at: int
    prompt: int
    output: int
    prefix: int = 0
    prefix_tokens: int = 0
    tail: int = 0
    lora: int = -1
    priority: int = 0
    structured: int = 0


def small(**changed: float) -> EngineSettings:
    """The plain settings with some changed."""
    return replace(PLAIN, **changed)  # type: ignore[arg-type]


def one(settings: EngineSettings, model: StepModel = MODEL, seed: int = 1) -> c.Engines:
    """One replica, up and idle."""
    return make_engines([(settings, model)], 2_000, seed)


def add(
    e: c.Engines, ask: Asked, now: int, replica: int = 0, source: int = -1, flags: int = 0
) -> int:
    """Add a request; its slot."""
    slot = engine_add(
        e, replica, now, -1, ask.prompt, ask.output, ask.prefix, ask.prefix_tokens, ask.tail,
        ask.lora, ask.priority, ask.structured, source, flags, -1,
    )  # fmt: skip
    assert slot >= 0
    return int(slot)


def run(
    e: c.Engines,
    asked: list[Asked],
    check: Callable[[c.Engines], None] | None = None,
    steps: int = 20_000,
) -> dict[int, dict[int, int]]:
    """Add requests at their instants and step to the end: columns by number of the request."""
    order = sorted(range(len(asked)), key=lambda i: asked[i].at)
    owners: dict[int, int] = {}
    ended: dict[int, dict[int, int]] = {}
    for _ in range(steps):
        due = int(e.rep[0, c.NEXT_NS])
        if order and (due < 0 or asked[order[0]].at <= due):
            number = order.pop(0)
            owners[add(e, asked[number], asked[number].at)] = number
        elif due < 0:
            break
        else:
            engine_step(e, 0, due)
        for kind, slot, _ in drained(e):
            if kind == c.EVENT_DONE:
                ended[owners.pop(slot)] = dict(enumerate(int(x) for x in e.seq[slot]))
                engine_forget(e, slot)
        if check is not None:
            check(e)
    else:
        raise AssertionError(f"not idle after {steps} turns")
    return ended


def drained(e: c.Engines) -> Iterator[tuple[int, int, int]]:
    """Events since the last look: (kind, slot, ns)."""
    count = int(e.events[0, 0])
    rows = e.events[1 : count + 1].tolist()
    e.events[0, 0] = 0
    yield from ((kind, slot, at) for kind, slot, at in rows)


def blocks_balance(e: c.Engines, replica: int = 0) -> None:
    """Every block is clean, cached or held, and each list says what its entries say."""
    rep, seq, entries = e.rep[replica], e.seq, e.entries[replica]
    mine = (seq[:, c.REPLICA] == replica) & (seq[:, c.STATE] >= c.WAITING)
    mine &= seq[:, c.STATE] <= c.HELD
    owned = int(seq[mine, c.OWN].sum())
    assert (seq[mine, c.OWN] >= 0).all()
    unused = set()
    at = int(rep[c.ENTRY_FREE])
    while at >= 0:
        unused.add(at)
        at = int(entries[at, c.E_CHAIN])
    used = [i for i in range(len(entries)) if i not in unused]
    assert (entries[used, c.E_HELD] >= 0).all() and (entries[used, c.E_IDLE] >= 0).all()
    assert (entries[used, c.E_BLOCKS] == entries[used, c.E_HELD] + entries[used, c.E_IDLE]).all()
    cached, at, before = 0, int(rep[c.LRU_HEAD]), -1
    while at >= 0:
        assert entries[at, c.E_IDLE] > 0 and entries[at, c.E_BEFORE] == before
        cached, before, at = cached + int(entries[at, c.E_IDLE]), at, int(entries[at, c.E_AFTER])
    assert cached == rep[c.CACHE] == entries[used, c.E_IDLE].sum()
    held = int(entries[used, c.E_HELD].sum())
    assert rep[c.CLEAN] + rep[c.CACHE] + held + owned == rep[c.BLOCKS]
    refs = np.zeros(len(entries), int)
    for column in (c.BASE_ENTRY, c.TAIL_ENTRY):
        np.add.at(refs, seq[mine & (seq[:, column] >= 0), column], 1)
    assert (refs[used] == entries[used, c.E_REFS]).all()
    assert rep[c.TIER_USED] == entries[used, c.E_TIER].sum() <= max(rep[c.TIER_BLOCKS], 0)


def lists_agree(e: c.Engines, replica: int = 0) -> None:
    """Counts of the running, the waiting and the blocked are those of their lists."""
    rep, run_ = e.rep[replica], e.run[replica]
    mine = e.seq[e.seq[:, c.REPLICA] == replica]
    count = int(rep[c.RUNNING_COUNT])
    assert count == (mine[:, c.STATE] == c.RUNNING).sum() <= rep[c.MAX_SEQS]
    blocked = int((mine[:, c.STATE] == c.BLOCKED).sum())
    assert rep[c.BLOCKED_COUNT] == blocked
    assert rep[c.WAITING_COUNT] == blocked + (mine[:, c.STATE] == c.WAITING).sum()
    assert rep[c.HELD_COUNT] == (mine[:, c.STATE] == c.HELD).sum()
    waiting = 0
    for level in range(c.PRIORITIES):
        at, before = int(rep[c.WAIT_HEAD + level]), -1
        while at >= 0:
            assert e.seq[at, c.STATE] == c.WAITING and e.seq[at, c.PREV] == before
            waiting, before, at = waiting + 1, at, int(e.seq[at, c.NEXT])
        assert rep[c.WAIT_TAIL + level] == before
    assert waiting == rep[c.WAITING_COUNT] - blocked
    running = run_[c.RUN_SEQ, :count]
    assert len(set(running.tolist())) == count
    own = e.seq[running]
    held = own[:, c.OWN] + own[:, c.BASE_BLOCKS] + own[:, c.TAIL_BLOCKS]
    room = held * rep[c.BLOCK_SIZE] - run_[c.RUN_LEN, :count]
    assert (room == run_[c.RUN_ROOM, :count]).all() and (room >= 0).all()
    assert (run_[c.RUN_NEW, :count].sum()) <= rep[c.TOKEN_BUDGET]
    flying = run_[c.RUN_EMIT, :count] + run_[c.RUN_EMIT + 1, :count]
    assert (run_[c.RUN_LEFT, :count] + flying == run_[c.RUN_DUE, :count]).all()
    if rep[c.LORA_SLOTS]:
        used = [int((own[:, c.ADAPTER_AT] == a).sum()) for a in range(int(rep[c.LORA_SLOTS]))]
        refs = e.adapters[replica, : int(rep[c.LORA_SLOTS]), c.A_REFS]
        assert sum(used) <= refs.sum()


def all_hold(e: c.Engines) -> None:
    """What must be true between any two turns of one replica."""
    blocks_balance(e)
    lists_agree(e)
