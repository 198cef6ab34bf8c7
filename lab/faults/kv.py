"""Faults of the KV cache: too few blocks, nothing found again, slow tiers."""

from typing import Final

from tailburn.lab.faults.needs import (
    for_answers,
    for_conversations,
    near_cap,
    whole_prompts,
    with_small_kv,
)
from tailburn.lab.faults.needs import with_tier as tier
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.faults.traffics import conversations, long_answers, short_conversations

BLOCKS: Final = 85
"""KV blocks of 16 tokens that a running sequence holds in the mean, of these workloads."""


def _blocks(site: Site, share: float) -> float:
    """So much of what a full batch holds, in blocks."""
    return share * site.fleet.pools[0].scheduler.max_num_seqs * BLOCKS


def _preempted(site: Site) -> Broken:
    """The engines have fewer blocks than their running sequences grow to need."""
    blocks = _blocks(site, site.by(0.92, 0.84, 0.77))
    return Broken((site.turn("kv_blocks", blocks),), affected={"pool": site.pools})


S13 = Scenario(
    id="S13",
    name="kv-preemption",
    title="KV is full and running requests lose their blocks",
    broken="kv_blocks of all replicas to 0.92, 0.84, 0.77 (weak, medium, strong) of what a full "
    "batch holds, as when memory utilisation is set lower; answers are long (633 tokens), and "
    "nothing is held back at admission",
    expect="At medium one request in five is preempted, with a gap of 0.3 s in the median and of a "
    "second or two for one in ten, so ITL p99 x 5; TTFT p99 x 26 as preempted requests are "
    "served before new ones, p50 x 1.9 (where KV was full before, and requests waited for "
    "it, p50 may fall); TPOT p50 x 1.04, p99 x 1.25. KV at 0.98 and more, preemptions above "
    "0, 7 % of the tokens computed for the second time.",
    why="A request is admitted when its first chunk fits, and grows by a block every 16 tokens. "
    "When none is free, the last that came gives its blocks back and is computed again later: "
    "prompt and answer so far.",
    confusable=(
        Confusable("S5", "long prompts make gaps without a preemption"),
        Confusable("S14", "at the wall requests wait to be admitted and those that run are safe"),
        Confusable("S1", "a surge waits with running at its cap and KV free"),
    ),
    verdict="KV (preemption)",
    step="kv",
    hop="decode",
    cause="KV blocks",
    breaks=_preempted,
    base=for_answers,
    traffic=long_answers,
    busy=True,
)  # fmt: skip


def _wall(site: Site) -> Broken:
    """Few blocks, and an admission leaves some free for those that run."""
    blocks = _blocks(site, site.by(0.76, 0.64, 0.52))
    return Broken(
        (site.turn("kv_blocks", blocks),
         site.turn("kv_watermark_blocks", max(0.03 * blocks, 30.0))),
        affected={"pool": site.pools},
    )  # fmt: skip


S14 = Scenario(
    id="S14",
    name="kv-wall",
    title="KV is full and nobody is admitted",
    broken="kv_blocks of all replicas to 0.76, 0.64, 0.52 (weak, medium, strong) of what a full "
    "batch holds; whole prompts are admitted, and 3 % of the blocks left free",
    expect="TTFT p50 x 40 at medium, W > 0.9; TPOT normal. Requests wait while running is below "
    "max_num_seqs and the token budget is not used up; KV near 1, preemptions near 0. The "
    "queue is but its symptom: offered load is flat.",
    why="The next prompt waits until all of it fits; what is left free is what those that run "
    "grow by. Running stays below its cap, for blocks end first.",
    confusable=(
        Confusable("S1", "in a surge running is at its cap and KV free"),
        Confusable("S13", "preemptions count, and ITL has gaps of seconds"),
        Confusable("S26", "requests wait for an adapter's slot with KV free"),
    ),
    verdict="KV (capacity)",
    step="kv",
    hop="queue",
    cause="KV blocks",
    breaks=_wall,
    needs=(whole_prompts,),
    base=near_cap,
    busy=True,
)  # fmt: skip


def _forgotten(site: Site) -> Broken:
    """Hardly any block is kept for reuse."""
    kept = site.by(70_000.0, 16_000.0, 0.0)
    return Broken((site.turn("prefix_cache_blocks", kept),), affected={"pool": site.pools})


S15 = Scenario(
    id="S15",
    name="prefix-eviction",
    title="Prompts are found in the prefix cache no more",
    broken="blocks kept for reuse: 70,000, 16,000, 0 of 176,000 a replica (weak, medium, strong); "
    "conversations, behind a prefix-aware router",
    expect="Hits from 0.37 of tokens to 0.25, 0.10, 0 and computed tokens x 1.2, 1.4, 1.6 (weak, "
    "medium, strong); TTFT p50 and prefill x 1.4 at medium with the tokens that are not found, "
    "TPOT x 1.1 for the prefill it shares steps with. Arrivals flat; steps as predicted.",
    why="A turn whose earlier turns were evicted is computed from its first token. The same "
    "prompts arrive, more of them is computed, at the same pace.",
    confusable=(
        Confusable("S1", "in a surge arriving tokens are up; here those computed"),
        Confusable("S7", "a low clock takes longer for the same uncached tokens"),
        Confusable("N2", "longer prompts arrive; here they are as ever"),
        Confusable("N5", "a restart's cold cache is warm again within minutes"),
    ),
    verdict="KV (prefix reuse)",
    step="kv",
    hop="prefill",
    cause="prefix cache",
    breaks=_forgotten,
    needs=(with_small_kv,),
    base=for_conversations,
    traffic=short_conversations,
)  # fmt: skip


def _offload(site: Site) -> Broken:
    """The offload tier is read more slowly."""
    return Broken(
        (site.turn("kv_load_gbps", site.by(8.0, 4.0, 2.0)),), affected={"pool": site.pools}
    )


S16 = Scenario(
    id="S16",
    name="kv-offload",
    title="KV is read back slowly from where it was offloaded to",
    broken="read of the offload tier from 20 to 8, 4, 2 GB/s (weak, medium, strong); "
    "conversations, their KV mostly in host memory",
    expect="Requests with a hit in the tier, three of four here, wait for its load (medium: 0.14 s "
    "in the median, 1.6 s at p99); the others do not at all, so TTFT has two modes. TPOT "
    "normal, hits as ever, GB/s of loads down, requests waiting for KV while KV is free.",
    why="A request whose prefix lies in the tier waits for 328 kB a token before it is scheduled, "
    "one load after another; without such a prefix it does not wait.",
    confusable=(
        Confusable("S15", "there hits are gone; here they are as ever, and slow"),
        Confusable("S17", "a hand-off is every request's; a load only of those with a hit"),
        Confusable("S14", "requests wait for blocks with KV full; here KV is free"),
    ),
    verdict="KV (offload/storage)",
    step="kv",
    hop="kv_load",
    cause="KV offload",
    breaks=_offload,
    needs=(tier,),
    base=for_conversations,
    traffic=conversations,
)  # fmt: skip

KV: Final = (S13, S14, S15, S16)
