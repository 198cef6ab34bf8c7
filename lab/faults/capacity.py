"""Faults of capacity: replicas that are not there, slots that are taken, batches set too large."""

from dataclasses import replace
from math import ceil, sqrt
from typing import Final

import numpy as np

from tailburn.lab.faults.needs import capped, in_pools
from tailburn.lab.faults.scenario import Broken, Confusable, FaultError, Scenario, Site, Turn
from tailburn.lab.fleet import Fleet, standard
from tailburn.lab.workload import Change

S: Final = 10**9
DRAIN_S: Final = 30
"""A replica that is to go gets nothing new for so long before it ends."""
GONE_S: Final = 10
"""Until its next process begins."""
LEAST_S: Final = 60
AT_ONCE_S: Final = 10
"""The same where another pod is there at once, before a health check misses the old one."""


def roomy(per_s: float) -> Fleet:
    """Twice the standard replicas: room for another mix of requests, or for one that is away."""
    fleet = standard(per_s, replicas=2 * len(standard(per_s).replicas))
    return replace(fleet, name=f"roomy-{len(fleet.replicas)}")


def restart(name: str, at_ns: int, gone_s: float = GONE_S) -> list[Turn]:
    """A replica is drained, ends, and begins anew: what its load takes, other knobs say."""
    ends_ns = at_ns + DRAIN_S * S
    begins_ns = ends_ns + int(gone_s * S)
    return [
        Turn("replica_draining", 1.0, name, at_ns, begins_ns + S),
        Turn("replica_down", 1.0, name, ends_ns, begins_ns),
    ]


def long_enough(site: Site) -> None:
    """FaultError where a replica cannot be restarted within the site's time."""
    if site.end_ns - site.start_ns < LEAST_S * S:
        raise FaultError(f"replicas restart: want {LEAST_S} s at least, not from {site.start_ns} "
                         f"until {site.end_ns} ns")  # fmt: skip


def waves(site: Site, load_s: float, at_once: int) -> tuple[list[Turn], tuple[str, ...]]:
    """All replicas restarted, `at_once` at a time, spread over the site's time.

    A wave begins when the one before it serves again, at the earliest; what the time does
    not hold stays as it is. Returns the turns and which replicas.
    """
    long_enough(site)
    names = site.replicas()
    groups = [names[i : i + at_once] for i in range(0, len(names), at_once)]
    least = int((load_s + DRAIN_S + GONE_S + 60) * S)
    every = max((site.end_ns - site.start_ns) // len(groups), least)
    turns: list[Turn] = []
    restarted: list[str] = []
    for number, group in enumerate(groups):
        at_ns = site.start_ns + number * every
        if number and at_ns + least > site.end_ns:
            break
        for name in group:
            turns += restart(name, at_ns)
            restarted.append(name)
    return turns, tuple(restarted)


def _reclaimed(site: Site) -> Broken:
    """Some replicas are taken away again and again; those that come take requests and load."""
    long_enough(site)
    load_s, every_s = site.by((90.0, 900.0), (240.0, 480.0), (420.0, 480.0))
    names = site.replicas()
    count = max(ceil(len(names) / 4), 1)
    hit = sorted(np.random.default_rng(site.seed).choice(len(names), count, replace=False))
    turns = [site.turn("model_load_s", load_s), site.turn("route_to_loading", 1.0)]
    for at_ns in range(site.start_ns, site.end_ns, int(every_s * S)):
        if at_ns > site.start_ns and at_ns + (load_s + DRAIN_S + GONE_S) * S > site.end_ns:
            break
        for i in hit:
            turns += restart(names[i], at_ns, AT_ONCE_S)
    return Broken(tuple(turns), affected={"replica": tuple(names[i] for i in hit)})


S25 = Scenario(
    id="S25",
    name="cold-start",
    title="Replicas are reclaimed, and those in their place take requests while they load",
    broken="a quarter of the replicas (one at least) restarted every 15, 8, 8 minutes; a new one "
    "needs 90, 240, 420 s and its weights' reading before it serves, yet the router sends to it at "
    "once (weak, medium, strong)",
    expect="Very high TTFT on new replicas alone: their requests wait for the model, as long as it "
    "still loads; on the rest a larger batch, and a queue near their cap. Offered load is flat, "
    "ready replicas are fewer than wanted, those concerned are young.",
    why="Readiness is not gated. Least-requests routing sends little to a replica whose requests "
    "do not come back, so few wait there, but for minutes.",
    confusable=(
        Confusable("S1", "offered load is up and all replicas are ready; here it is flat and some "
                   "are not"),
        Confusable("S35", "a rolling restart takes every replica once, in order, and new ones get "
                   "nothing until they serve"),
        Confusable("S4", "an unlucky replica's queue without a load of the model: it is old"),
    ),
    verdict="QUEUE (missing capacity)",
    step="queue",
    hop="queue",
    cause="cold start",
    breaks=_reclaimed,
    base=roomy,
    needs=(capped,),
)  # fmt: skip


def _adapters(site: Site) -> Broken:
    """Chat asks for many adapters, more than the GPU has slots for or the host holds."""
    share, adapters = site.by((0.05, 60.0), (0.1, 60.0), (0.16, 60.0))
    return Broken(
        changes=(
            site.change("lora", share, "kind:chat"),
            site.change("adapters", adapters, "kind:chat"),
        ),
        affected={"route": ("chat",)},
    )


S26 = Scenario(
    id="S26",
    name="adapter-load",
    title="More LoRA adapters in use than slots: each waits to be loaded",
    broken="5, 10, 16 % of chat asks for 60 adapters evenly (weak, medium, strong; before: 5 % for "
    "12, most for a few); the GPU has 4 slots, the host's memory 32",
    expect="Requests with an adapter wait for its load, 4.4 s from storage, or for a slot that "
    "another adapter's requests hold; all others, and TPOT, as ever. Running is below its cap, KV "
    "is free, adapter ids churn.",
    why="An adapter's slot is free only when nobody uses it; the host's memory forgets the least "
    "used. The load runs beside the steps of the others. From storage p99 of it is 8 s.",
    confusable=(
        Confusable("S14", "at the KV wall every request waits and KV is full; here those with an "
                   "adapter, and KV is free"),
        Confusable("S1", "a surge lengthens every wait; here requests without adapter do not wait"),
    ),
    verdict="QUEUE (adapter)",
    step="queue",
    hop="lora_load",
    cause="adapter load",
    breaks=_adapters,
)  # fmt: skip


def _sweep(site: Site) -> Broken:
    """A batch job asks in rounds, as fast as its own loop lets it, on the interactive pool."""
    a_round = site.by(15, 30, 60) * len(site.replicas())
    scope, every, long = "client:sweep", 30 * S, 2 * S
    changes = [site.change("prompt_floor", 3_000.0, scope)]
    for at_ns in range(site.start_ns, site.end_ns, every):
        until = min(at_ns + long, site.end_ns)
        changes.append(Change("added_rate", a_round / 2.0, at_ns, until, scope))
    turns = []
    if site.by(False, False, True):
        turns = [site.turn("priority_scheduling", 1.0)]
        changes += [site.change("priority", 1.0), site.change("priority", 0.0, scope)]
    return Broken(tuple(turns), tuple(changes), affected={"tenant": ("sweep",)})


S32 = Scenario(
    id="S32",
    name="batch-sweep",
    title="A batch sweep runs on the interactive pool, without priority or with the wrong one",
    broken="the batch client `sweep` sends 15, 30, 60 prompts of 3,000 tokens and more per replica "
    "every 30 s; the scheduler is first come first served, at strong it puts batch before "
    "interactive work",
    expect="Interactive p95 of TTFT up, p50 hardly: who comes behind a round waits in the queue "
    "until it is prefilled (at 30: two seconds or so). TPOT up while the round decodes. "
    "Interactive arrivals are flat, the batch share of arrivals is up, the wait is by priority.",
    why="A round is 45,000 to 180,000 tokens a replica: at 20,000 tokens/s of prefill it takes "
    "seconds, and what came later waits its turn.",
    confusable=(
        Confusable("S1", "a surge is of interactive requests; here they come as ever"),
        Confusable("S6", "a neighbour's long contexts slow decode and nobody waits in the queue"),
        Confusable("S5", "long prompts lengthen others' ITL and not their wait to be scheduled"),
    ),
    verdict="QUEUE (batch work on interactive replicas)",
    step="queue",
    hop="queue",
    cause="batch sweep",
    breaks=_sweep,
)  # fmt: skip

MORE: Final = 3
"""Replicas of the fleet whose batches are capped, in standard ones."""
RAISED: Final = 4.0
CAP: Final = 0.42
"""Cap over the square of a standard replica's mean requests/s: measured, what a third needs."""
BACK_S: Final = 100
"""Replicas begin to come back so long before the cap is lowered again."""
MOST_PER_S: Final = 6.5
"""Mean requests/s that the autoscaler leaves to a replica, at the most."""


def saving(per_s: float) -> Fleet:
    """Three times the standard replicas, their batches capped at what a third of them needs."""
    count = len(standard(per_s).replicas)
    cap = max(ceil(CAP * (per_s / count) ** 2), 4)
    fleet = standard(per_s, replicas=MORE * count)
    return replace(in_pools(fleet, scheduler={"max_num_seqs": cap}), name=f"saving-{MORE * count}")


def _batch(site: Site) -> Broken:
    """The cap raised, and the replicas that are then idle taken away."""
    names = site.replicas()
    cap = site.fleet.pools[0].scheduler.max_num_seqs
    crowded = max(sqrt(cap / CAP) / MOST_PER_S, 1.0)
    keep = min(ceil(len(names) / MORE * site.by(2.0, 1.25, 1.0) * crowded), len(names) - 1)
    turns = [
        site.turn("max_num_seqs", RAISED * cap),
        site.turn("release", 1.0),
    ]
    back_ns = max(site.end_ns - BACK_S * S, (site.start_ns + site.end_ns) // 2 + 1)
    down_ns = min(site.start_ns + DRAIN_S * S, back_ns - 1)
    for name in names[keep:]:
        turns.append(Turn("replica_draining", 1.0, name, site.start_ns, back_ns))
        turns.append(Turn("replica_down", 1.0, name, down_ns, back_ns))
    return Broken(tuple(turns), affected={"pool": site.pools})


S33 = Scenario(
    id="S33",
    name="max-batch-raised",
    title="Throughput bought with delay: max batch raised fourfold, replicas saved",
    broken="max_num_seqs x 4 on a fleet whose cap was near what it needs, and of its replicas a "
    "third, 58 %, two thirds taken away (weak, medium, strong; fewer where they are busier) by an "
    "autoscaler that goes by the share of slots in use",
    expect="TPOT p50 up, smoothly and for all (at a busy noon x 1.1, 1.2 to 1.45, 1.55 to 1.8); "
    "TTFT a little up; no queue. Running per replica above the old cap, tokens/s of a replica up, "
    "each step as long as its batch makes it; begins with a change of configuration.",
    why="Arrivals are what they were: on fewer replicas each has a larger batch, which a step "
    "takes longer for. Without fewer replicas an open stream of requests leaves the batch as it "
    "was, and the cap's change shows nowhere.",
    confusable=(
        Confusable("S6", "there one tenant's contexts fill the KV cache; here the batch is larger, "
                   "its contexts are as ever"),
        Confusable("S9", "a slower release lengthens the step of the same batch; here the step is "
                   "what the batch predicts"),
        Confusable("S25", "missing capacity queues and is young; here all that is wanted is ready"),
    ),
    verdict="THROUGHPUT (batch size, change)",
    step="throughput",
    hop="decode",
    cause="max batch raised",
    breaks=_batch,
    base=saving,
    busy=True,
)  # fmt: skip


def _cold_rolling(site: Site) -> Broken:
    """Every replica restarted in turn, each of which reads its weights from storage."""
    load_s, gbps = site.by((90.0, 4.0), (240.0, 3.0), (380.0, 2.0))
    at_once = max(ceil(len(site.replicas()) / 4), 1)
    turns, hit = waves(site, load_s + 70.0 * at_once / gbps, at_once)
    knobs = (site.turn("model_load_s", load_s), site.turn("storage_gbps", gbps))
    return Broken((*knobs, *turns), affected={"replica": hit})


S35 = Scenario(
    id="S35",
    name="cold-rolling-restart",
    title="A rolling restart whose replicas load their weights cold",
    broken="all replicas drained and restarted in turn, a quarter (one at least) at a time; 70 GB "
    "of weights read at 4, 3, 2 GB/s and 90, 240, 380 s to start (weak, medium, strong)",
    expect="In waves: on the replicas that are left a larger batch, and a queue where they come "
    "near their cap; new replicas have an empty prefix cache. Ready fewer than wanted, each "
    "replica's age small after its wave; offered load flat.",
    why="Capacity is missing while a replica loads; the next wave begins when it serves. Nothing "
    "is sent to one that loads.",
    confusable=(
        Confusable("S25", "there the same few replicas come and go and get requests while they "
                   "load; here each one restarts once, in order, and is ready first"),
        Confusable("N5", "warm weights are back within a minute; here it takes many"),
        Confusable("S1", "a surge has all replicas ready and offered load up"),
    ),
    verdict="QUEUE (missing capacity: rolling restart)",
    step="queue",
    hop="queue",
    cause="rolling restart, cold",
    breaks=_cold_rolling,
    base=roomy,
    needs=(capped,),
)  # fmt: skip

CAPACITY: Final = (S25, S26, S32, S33, S35)
