"""How long one step of an engine takes: compiled, of a flat array and four numbers.

A step carries `batch` decoding sequences, which hold `kv_tokens` tokens of context in
all, and `prefill_tokens` tokens of prompts, whose attention has `prefill_pairs` (query,
key) pairs (`chunk_pairs` of each prompt's part, summed). The layout of the array is in
`coef`. What comes back is ns as float64; a step without work takes 0 ns.
"""

import math
from typing import Any

import numpy as np

from tailburn.lab.compiled import compiled, inlined
from tailburn.lab.physics import coef as c

GEMM = 0
ATTENTION = 1
PREFILL_ATTENTION = 2
ELEMENTWISE = 3
ALLREDUCE = 4
ALLTOALL = 5
STAGE_LINKS = 6
BUBBLE = 7
STRAGGLE = 8
DRAFT = 9
HOST = 10
PARTS = 11
PART_NAMES = (
    "gemm",
    "attention",
    "prefill_attention",
    "elementwise",
    "allreduce",
    "alltoall",
    "stage_links",
    "bubble",
    "straggle",
    "draft",
    "host",
)
"""The parts of a step, in the order of `step_parts_ns`."""


@inlined
def chunk_pairs(chunk: Any, before: Any) -> Any:
    """(Query, key) pairs of a prompt's part of `chunk` tokens after `before` in the cache."""
    return chunk * (before + 0.5 * (chunk + 1.0))


@inlined
def _joined(one: Any, other: Any, bend: Any) -> Any:
    """Two bounds of one kernel: near the larger, up to 2^(1/bend) above where they meet."""
    low, high = min(one, other), max(one, other)
    if low <= 0.0:
        return high
    return high * (1.0 + (low / high) ** bend) ** (1.0 / bend)


@inlined
def _floor_ns(floor: Any, clock: Any) -> Any:
    """What no size undercuts: half of it follows the clock, half is latency of memory."""
    return 0.5 * floor * (1.0 + 1.0 / clock)


@inlined
def _products_ns(coef: Any, tokens: Any, hbm: Any, clock: Any) -> Any:
    """The matrix products of one layer over `tokens` tokens, experts included."""
    row = coef[c.GEMM_ROW] * tokens / (tokens + coef[c.GEMM_ROW_HALF])
    fixed = _floor_ns(coef[c.GEMM_FLOOR] + row, clock)
    bend = coef[c.GEMM_BEND]
    total = fixed
    total += _joined(coef[c.GEMM_READ] / hbm, coef[c.GEMM_TOKEN] * tokens / clock, bend)
    experts = coef[c.EXPERTS]
    if experts > 0.0:
        hit = 1.0 - (1.0 - coef[c.EXPERTS_ACTIVE] / experts) ** tokens
        busiest = coef[c.EXPERT_TOKEN] * tokens * coef[c.EXPERT_SKEW]
        total += 0.5 * fixed
        total += _joined(coef[c.EXPERT_READ] * hit / hbm, busiest / clock, bend)
    return total


@inlined
def _allreduce_ns(coef: Any, tokens: Any) -> Any:
    """The all-reduces of one layer, when no rank is late."""
    if coef[c.ALLREDUCES] == 0.0:
        return 0.0
    floor = coef[c.ALLREDUCE_FLOOR]
    eager = coef[c.ALLREDUCE_EAGER]
    floor += eager * (coef[c.ALLREDUCE_EAGER_FLOOR] - floor)
    one = _joined(floor, coef[c.ALLREDUCE_TOKEN] * tokens, coef[c.ALLREDUCE_BEND])
    return coef[c.ALLREDUCES] * one * coef[c.ALLREDUCE_FACTOR]


@inlined
def _alltoall_ns(coef: Any, tokens: Any) -> Any:
    """Dispatch and combine of one layer's experts; the busiest rank sets the pace."""
    one = coef[c.ALLTOALL_FLOOR] + coef[c.ALLTOALL_TOKEN] * tokens * coef[c.EXPERT_SKEW]
    return coef[c.ALLTOALLS] * one * coef[c.ALLTOALL_FACTOR]


@compiled
def step_parts_ns(
    coef: Any, batch: Any, kv_tokens: Any, prefill_tokens: Any, prefill_pairs: Any, parts: Any
) -> Any:
    """Fill `parts` (PARTS float64, ns) and return their sum: the mean length of the step.

    With pipeline stages the batch is cut into micro-batches, one a stage where there are
    sequences enough, and the step ends when each stage has had its turn at each.
    """
    parts[:] = 0.0
    if batch <= 0 and prefill_tokens <= 0:
        return 0.0
    hbm, clock = coef[c.HBM_RATIO], coef[c.SM_CLOCK_RATIO]
    stages = coef[c.STAGES]
    micro = stages if prefill_tokens > 0 else min(stages, float(batch))
    verified = batch * (1.0 + coef[c.DRAFT_TOKENS]) / micro
    tokens = verified + prefill_tokens / micro
    passes = stages * coef[c.LAYERS]

    parts[GEMM] = passes * _products_ns(coef, tokens, hbm, clock)
    floor = _floor_ns(coef[c.ATTENTION_FLOOR], clock)
    if batch > 0:
        attention = coef[c.ATTENTION_TOKEN] * kv_tokens / micro / hbm
        attention += coef[c.ATTENTION_SEQUENCE] * batch / micro / clock
        parts[ATTENTION] = passes * (floor + attention)
    if prefill_tokens > 0:
        pairs = coef[c.ATTENTION_PAIR] * prefill_pairs / micro / clock
        parts[PREFILL_ATTENTION] = passes * (floor + pairs)
        parts[ELEMENTWISE] = passes * coef[c.ELEMENTWISE_TOKEN] * prefill_tokens / micro / hbm
    if coef[c.RANKS] > 1.0:
        parts[ALLREDUCE] = passes * _allreduce_ns(coef, tokens)
    if coef[c.ALLTOALLS] > 0.0:
        parts[ALLTOALL] = passes * _alltoall_ns(coef, tokens)
    if stages > 1.0:
        link = coef[c.STAGE_LINK_FLOOR] + coef[c.STAGE_LINK_TOKEN] * tokens
        parts[STAGE_LINKS] = stages * link * coef[c.STAGE_LINK_FACTOR]
    # A stage without a micro-batch idles, as do all but the last while that one has the head.
    head = _joined(coef[c.HEAD_READ] / hbm, coef[c.HEAD_TOKEN] * verified / clock, 4.0)
    idle = parts.sum() * (stages - micro) / stages
    for part in range(BUBBLE):
        parts[part] *= micro / stages
    parts[BUBBLE] = idle + (stages - 1.0) * head
    parts[GEMM] += head
    if coef[c.RANKS] > 1.0:
        busy = parts[GEMM] + parts[ATTENTION] + parts[PREFILL_ATTENTION] + parts[ELEMENTWISE]
        late = max(1.0 / coef[c.STRAGGLER_RATIO] - 1.0, coef[c.RANK_WAIT])
        parts[STRAGGLE] = busy * late
    parts[DRAFT] = coef[c.DRAFT_TOKENS] * coef[c.DRAFT_STEP] / hbm
    host = coef[c.HOST_STEP] + coef[c.HOST_SEQUENCE] * batch
    if prefill_tokens > 0:
        host += coef[c.HOST_CHUNK]
    waits = max(coef[c.HOST_LAUNCH] * coef[c.HOST_FACTOR] - parts.sum(), 0.0)
    parts[HOST] = host * coef[c.HOST_FACTOR] + waits
    return parts.sum()


@compiled
def decode_step_ns(
    coef: Any, batch: Any, kv_tokens: Any, prefill_tokens: Any, prefill_pairs: Any
) -> Any:
    """The mean length of a step, in ns: `step_parts_ns` without the parts."""
    return step_parts_ns(
        coef, batch, kv_tokens, prefill_tokens, prefill_pairs, np.empty(PARTS, np.float64)
    )


@compiled
def jittered_ns(coef: Any, mean_ns: Any, normal: Any, uniform: Any) -> Any:
    """One step's own length, of a standard normal and a uniform (0 to 1) draw.

    The factor has mean 1; rarely the host holds a step up on top of it.
    """
    sigma = coef[c.JITTER_SIGMA]
    length = mean_ns * math.exp(sigma * normal - 0.5 * sigma * sigma)
    chance = coef[c.STALL_CHANCE]
    if uniform < chance:
        length -= coef[c.STALL_MEAN] * math.log(max(uniform, 1e-12) / chance)
    return length


@compiled
def prefill_ns(coef: Any, tokens: Any, cached: Any, budget: Any) -> Any:
    """A prompt of `tokens`, `cached` of them in the cache, alone, in steps of `budget`."""
    total, before = 0.0, float(cached)
    while before < tokens:
        chunk = min(float(budget), tokens - before)
        total += decode_step_ns(coef, 0, 0.0, chunk, chunk_pairs(chunk, before))
        before += chunk
    return total


@compiled
def tokens_a_step(coef: Any) -> Any:
    """Mean tokens a sequence gains a step: 1, or more with accepted drafts."""
    chance, total = 1.0, 1.0
    for _ in range(int(coef[c.DRAFT_TOKENS])):
        chance *= coef[c.SPEC_ACCEPTANCE]
        total += chance
    return total


@compiled
def accepted_tokens(coef: Any, uniform: Any) -> Any:
    """Tokens one sequence gains in one step (1 to DRAFT_TOKENS + 1), of a uniform draw."""
    chance, gained = 1.0, 1
    for _ in range(int(coef[c.DRAFT_TOKENS])):
        chance *= coef[c.SPEC_ACCEPTANCE]
        if uniform >= chance:
            break
        gained += 1
    return gained
