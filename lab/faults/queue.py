"""Faults whose excess is a queue: more to do than there is room for, or the room misused."""

from typing import Final

from tailburn.lab.faults.needs import impatient, near_cap, round_robin
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.workload import Change


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


S: Final = 10**9
BURST_S: Final = 120
EVERY_S: Final = 600


def _storm(site: Site) -> Broken:
    """Clients give up early and ask again, and some of what they gave up goes on."""
    tries, lost = site.by((2.0, 0.25), (3.0, 0.28), (5.0, 0.3))
    bursts = tuple(
        Change("arrival_factor", 2.0, at_ns, min(at_ns + BURST_S * S, site.end_ns))
        for at_ns in range(site.start_ns, site.end_ns, EVERY_S * S)
    )
    return Broken(
        (
            site.turn("client_timeout_s", 10.0),
            site.turn("retry_max", tries),
            site.turn("retry_backoff_s", 0.5),
            site.turn("retry_backoff_cap_s", 2.0),
            site.turn("abort_lost", lost),
        ),
        bursts,
    )


S2 = Scenario(
    id="S2",
    name="retry-storm",
    title="Clients give up after 10 s and ask again, which is what keeps them waiting",
    broken="all clients: time-out 10 s for the first byte, 2, 3, 5 retries (weak, medium, strong) "
    "0.5 to 2 s later; 25, 28, 30 % of their hang-ups never reach the engine; set off by arrivals "
    "x 2 for two minutes every ten, on a fleet near its cap",
    expect="TTFT up to the time-out, nearly all of it the engine's queue; attempts of a request up "
    "to retries + 1, aborts and 499s up, answers down. Arrivals at the gateway are a multiple of "
    "what they were, distinct prompts hardly. At medium and more it outlives the burst that set "
    "it off; at weak it ends some minutes after it, and begins again with the next.",
    why="What a client has given up and the engine has not heard of is served for nobody, and "
    "that room is missed by those who ask again. Retries alone do not do it: where every hang-up "
    "reaches the engine, a queue of 10 s empties by itself within two minutes of the burst.",
    confusable=(
        Confusable("S1", "in a surge distinct prompts grow with arrivals, and nobody tries twice"),
        Confusable("S3", "orphans without retries: attempts of a request stay 1"),
        Confusable("S24", "a stall of the gateway is before the engine, whose queue is empty"),
    ),
    verdict="QUEUE (retry)",
    step="queue",
    hop="queue",
    cause="retry storm",
    breaks=_storm,
    base=near_cap,
    busy=True,
)  # fmt: skip


def _orphans(site: Site) -> Broken:
    """Hang-ups of clients do not get through the gateways."""
    names = tuple(g.name for g in site.fleet.gateways)
    lost = site.by(0.1, 0.2, 0.5)
    turns = (site.turn("abort_lost", lost), site.turn("orphans_run_on", 1.0))
    return Broken(turns, affected={"gateway": names})


S3 = Scenario(
    id="S3",
    name="zombie-requests",
    title="Engines go on with requests whose clients have left",
    broken="10, 20, 50 % of clients' hang-ups never reach the engine (weak, medium, strong), which "
    "decodes such a request to its max_tokens; on a fleet whose users stop half of the answers "
    "after 1.5 s or so and whose cap fits that",
    expect="Running pinned at its cap with arrivals flat, then a queue that grows; TTFT up, p99 "
    "first, TPOT not. The gateway has far fewer in flight than engines run, and completions go "
    "down: within 40 minutes by 16 %, 44 % and, at strong, 83 %.",
    why="Users who stop free room. When nobody tells the engine, and the end of an answer is found "
    "by whoever reads it, the engine goes on to its limit, ten times an answer's length.",
    confusable=(
        Confusable("S1", "in a surge the gateway has in flight what engines run and hold waiting"),
        Confusable("S2", "a storm has retries, attempts of a request above 1"),
        Confusable("N3", "longer answers are read to their end: aborts as ever"),
    ),
    verdict="QUEUE (orphans)",
    step="queue",
    hop="queue",
    cause="lost aborts",
    breaks=_orphans,
    needs=(impatient,),
    base=near_cap,
    busy=True,
)  # fmt: skip


def _skew(site: Site) -> Broken:
    """The router's weight of one replica is wrong."""
    names = site.replicas()
    name, count, times = site.one_of(names), len(names), site.by(1.5, 2.0, 2.6)
    weight = times * (count - 1) / (count - times)
    return Broken((site.turn("route_weight", weight, name),), affected={"replica": (name,)})


S4 = Scenario(
    id="S4",
    name="routing-imbalance",
    title="The router sends one replica more than its share",
    broken="the router's weight of one replica, so that it gets 1.5, 2, 2.6 times its even share "
    "(weak, medium, strong), on four replicas or more with a cap as each needs it",
    expect="TTFT in two modes: long on that replica, all of it queue, as ever on the others. TPOT "
    "normal; on the others a little lower. The fleet's means look normal, that replica's share of "
    "arrivals does not; its steps are as its batch predicts.",
    why="Weighted round robin does not look at queues: one replica is past its cap, the rest idle.",
    confusable=(
        Confusable("S8", "a slow replica queues with an even share of arrivals and steps longer "
                   "than predicted"),
        Confusable("S1", "a surge fills all replicas"),
        Confusable("S20", "a slow rank lengthens its replica's steps; arrivals are even"),
    ),
    verdict="QUEUE (routing)",
    step="queue",
    hop="queue",
    cause="routing weight",
    breaks=_skew,
    base=round_robin,
    busy=True,
)  # fmt: skip

QUEUE: Final = (S1, S2, S3, S4)
