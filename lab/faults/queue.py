"""Faults whose excess is a queue: more to do than there is room for, or the room misused."""

from typing import Final

from tailburn.lab.faults.needs import near_cap
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site


def _surge(site: Site) -> Broken:
    """All clients ask more often."""
    return Broken(changes=(site.change("arrival_factor", site.by(1.35, 1.6, 2.2)),))


S1 = Scenario(
    id="S1",
    name="demand-surge",
    title="More requests come than the replicas have room for",
    broken="arrivals of all clients x 1.35, 1.6, 2.2 (weak, medium, strong), on a fleet whose "
    "max_num_seqs is little above the batch of its busy hours",
    expect="TTFT up at p50 and p99 for all lengths, nearly all of it the wait in engines' queues "
    "(W > 0.9); TPOT at most x 1.3, for the batch ends at its cap. Waiting grows, running = "
    "max_num_seqs, KV free, steps as long as their batch predicts; offered load up.",
    why="Past the cap a request waits until another ends. Who runs is served as fast as a full "
    "batch is, whatever the length of the queue.",
    confusable=(
        Confusable("S7", "a slower engine queues too, but offered load is flat and prefill takes "
                   "longer than its tokens predict"),
        Confusable("S8", "a queue with offered load flat and steps longer than predicted"),
        Confusable("S2", "attempts are up and distinct prompts flat; here both are up"),
        Confusable("S14", "running is below its cap while requests wait, KV is full"),
        Confusable("S25", "offered load is flat, ready replicas are fewer than wanted"),
    ),
    verdict="QUEUE (demand)",
    step="queue",
    hop="queue",
    cause="demand surge",
    breaks=_surge,
    base=near_cap,
    busy=True,
)  # fmt: skip

QUEUE: Final = (S1,)
