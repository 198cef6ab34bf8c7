"""Faults of an engine's own pace: what it computes takes longer than it should."""

from typing import Final

from tailburn.lab.faults.needs import two_models, with_small_model
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site


def _memory(site: Site) -> Broken:
    """All GPUs read their memory more slowly."""
    ratio = site.by(0.9, 0.8, 0.6)
    pools = tuple(pool.name for pool in site.fleet.pools)
    return Broken((site.turn("hbm_ratio", ratio),), affected={"pool": pools})


S8 = Scenario(
    id="S8",
    name="memory-slowdown",
    title="GPU memory reads more slowly",
    broken="hbm_ratio of all replicas 0.9, 0.8, 0.6 (weak, medium, strong): bandwidth left by bad "
    "rows, by ECC, by a co-tenant",
    expect="TPOT up at all batch sizes, steps longer than their batch predicts; TTFT hardly, for "
    "prefill computes more than it reads; no queue. SM clock normal. Models on one GPU slow down "
    "as the others do.",
    why="A decode step reads all weights and all KV once: its time is bytes over bandwidth. What "
    "is left of a step (host, collectives, kernel floors) does not change.",
    confusable=(
        Confusable("S18", "slow collectives leave models on one GPU as they were; memory slows "
                   "them too"),
        Confusable("S12", "fewer accepted drafts leave the step's time as it was; here it is up"),
        Confusable("S6", "a neighbour's context is in the batch: its steps are as predicted"),
        Confusable("S7", "a low clock slows prefill most; memory slows decode most"),
    ),
    verdict="THROUGHPUT (memory)",
    step="throughput",
    hop="decode",
    cause="memory bandwidth",
    breaks=_memory,
    needs=(with_small_model,),
    traffic=two_models,
)  # fmt: skip

THROUGHPUT: Final = (S8,)
