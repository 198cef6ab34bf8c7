"""Faults of an engine's own pace: what it computes takes longer than it should."""

from typing import Final

from tailburn.lab.faults.needs import with_drafts, with_small_model, with_spare
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.faults.traffics import two_models


def _memory(site: Site) -> Broken:
    """All GPUs read their memory more slowly."""
    ratio = site.by(0.9, 0.8, 0.6)
    return Broken((site.turn("hbm_ratio", ratio),), affected={"pool": site.pools})


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
    needs=(with_spare, with_small_model),
    traffic=two_models,
)  # fmt: skip


def _clock(site: Site) -> Broken:
    """All GPUs run at a lower clock."""
    return Broken(
        (site.turn("sm_clock_ratio", site.by(0.85, 0.7, 0.5)),), affected={"pool": site.pools}
    )


S7 = Scenario(
    id="S7",
    name="clock-throttle",
    title="GPUs run at a lower clock: heat or a power cap",
    broken="sm_clock_ratio of all replicas 0.85, 0.7, 0.5 (weak, medium, strong)",
    expect="TTFT up by what prompts have to compute (medium: p50 x 1.3, p99 x 1.5); steps that "
    "only decode hardly (x 1.07), yet TPOT x 1.26 in a busy hour, for a third of a step's "
    "time is other requests' prompts. SM clock down, throttle reasons up.",
    why="Prefill multiplies: its time is arithmetic over the clock. Decode reads: of its step only "
    "kernel floors go by the clock, but steps that carry a prompt are decode steps too, and last "
    "longer for all streams.",
    confusable=(
        Confusable("S15", "prompts that are cached no more: uncached tokens are up, and prefill "
                   "takes what they predict"),
        Confusable("S8", "slow memory slows decode most; a low clock prefill"),
        Confusable("N2", "longer prompts: tokens are up, prefill as predicted"),
        Confusable("S9", "a release slows both, on new replicas alone"),
    ),
    verdict="THROUGHPUT (compute clock)",
    step="throughput",
    hop="prefill",
    cause="SM clock",
    breaks=_clock,
    needs=(with_spare,),
)  # fmt: skip


def _release(site: Site) -> Broken:
    """Every second replica gets a release whose kernels are slower."""
    names = site.replicas()[1::2] or site.replicas()
    factor = site.by(1.15, 1.5, 2.5)
    turns = tuple(
        turn
        for name in names
        for turn in (site.turn("release", 1.0, name), site.turn("kernel_factor", factor, name))
    )
    return Broken(turns, affected={"replica": names, "release": ("1",)})


S9 = Scenario(
    id="S9",
    name="release-regression",
    title="A new release of engine or driver is slower",
    broken="kernel_factor 1.15, 1.5, 2.5 (weak, medium, strong) on every second replica, which "
    "show the new release",
    expect="On replicas of the new release prefill and TPOT up alike, at once, by the same ratio "
    "at all lengths and batch sizes (medium: steps x 1.5); on the others hardly anything. "
    "The boundary is a release, clocks are as ever.",
    why="Kernels take longer at the same clock, those that read and those that multiply alike.",
    confusable=(
        Confusable("S7", "no boundary of releases, clocks are down; prefill suffers most"),
        Confusable("S8", "no boundary of releases; prefill is as ever"),
        Confusable("S4", "the slow replicas get more than their share; here no more than others"),
    ),
    verdict="THROUGHPUT (change)",
    step="throughput",
    hop="decode",
    cause="release",
    breaks=_release,
    needs=(with_spare,),
)  # fmt: skip


def _drafts(site: Site) -> Broken:
    """The draft model's guesses are accepted less often."""
    chance = site.by(0.55, 0.3, 0.1)
    return Broken((site.turn("spec_acceptance", chance),), affected={"pool": site.pools})


S12 = Scenario(
    id="S12",
    name="draft-acceptance",
    title="Speculative decoding: drafted tokens are accepted less often",
    broken="chance of each drafted token from 0.7 to 0.55, 0.3, 0.1 (weak, medium, strong); three "
    "are drafted a step",
    expect="TPOT x 2.2 at medium: x 1.79 for fewer tokens a step, the rest for the larger batch "
    "that follows; steps as long as their batch predicts, accepted tokens per step down, "
    "TTFT hardly (p50 x 1.1).",
    why="A sequence gains 1 + a + a^2 + a^3 tokens a step: 2.53 at 0.7, 1.42 at 0.3. Requests "
    "then stay longer, so more run at once, and the larger batch takes a little longer too.",
    confusable=(
        Confusable("S8", "slow memory lengthens the step; here its length is what its batch "
                   "predicts, and it yields less"),
        Confusable("N3", "longer answers: tokens a step as ever"),
    ),
    verdict="THROUGHPUT (acceptance)",
    step="throughput",
    hop="decode",
    cause="draft acceptance",
    breaks=_drafts,
    needs=(with_spare, with_drafts),
)  # fmt: skip

THROUGHPUT: Final = (S7, S8, S9, S12)
