"""Faults of the network: between hosts of one engine, to the gateway, to the engine."""

from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site, Turn
from tailburn.lab.fleet import Fleet, standard
from tailburn.lab.physics import Layout

S: Final = 10**9
SPANNING: Final = Layout("Llama-3.1-70B", "H200", 16)
"""Sixteen ranks: two hosts, whose all-reduces go over InfiniBand."""
SPANNING_PER_S: Final = 2.5
"""Requests/s that such a replica serves well: its all-reduces are ten times those of one host."""


def spanning(per_s: float) -> Fleet:
    """The standard fleet on replicas of two hosts each."""
    fleet = standard(per_s, layout=SPANNING, replicas=max(ceil(per_s / SPANNING_PER_S), 2))
    return replace(fleet, name=f"spanning-{len(fleet.replicas)}")


def _inter_node(site: Site) -> Broken:
    """One replica's link between its hosts: always slower, and now and then down to a retry."""
    name = site.one_of(site.replicas())
    steady, flap, jitter = site.by((1.15, 3.0, 0.1), (1.6, 5.0, 0.25), (2.2, 8.0, 0.4))
    draw = np.random.default_rng(site.seed)
    turns = [
        site.turn("allreduce_factor", steady, name),
        site.turn("allreduce_jitter", jitter, name),
    ]
    at = site.start_ns + int(draw.exponential(60.0) * S)
    while at < site.end_ns:
        until = min(at + int(draw.uniform(5.0, 25.0) * S), site.end_ns)
        turns.append(Turn("allreduce_factor", flap / steady, name, at, until))
        at = until + int((20.0 + draw.exponential(60.0)) * S)
    return Broken(tuple(turns), affected={"replica": (name,)})


S19 = Scenario(
    id="S19",
    name="inter-node-link",
    title="InfiniBand between the hosts of one replica is degraded, and its port flaps",
    broken="allreduce_factor of one replica whose ranks lie on two hosts: 1.15, 1.6, 2.2 all the "
    "time (weak, medium, strong), and 3, 5, 8 for 5 to 25 s every minute or two; from step to step "
    "its collectives differ by a sigma of 0.1, 0.25, 0.4",
    expect="On that replica prefill and step time up, in bursts (medium: TPOT x 1.4 at p50, x 1.6 "
    "to 2 at p90, x 2.5 at p99); the others as before, and a replica within one host would not "
    "notice. All ranks wait alike.",
    why="Every layer ends with two all-reduces over the link; a port that comes back retransmits "
    "for seconds. The batch grows meanwhile, for requests stay longer.",
    confusable=(
        Confusable("S11", "a pause stops all streams at once and has no link errors; here steps "
                   "are longer, each by the same, and port_xmit_wait and link_downed move"),
        Confusable("S18", "that one slows replicas within a host, evenly; this comes in bursts and "
                   "only where ranks lie on two hosts"),
    ),
    verdict="NCCL",
    step="nccl",
    hop="decode",
    cause="inter-node link",
    breaks=_inter_node,
    base=spanning,
)  # fmt: skip


def _far_clients(site: Site) -> Broken:
    """Clients of one zone: a longer way to every gateway, and messages lost on it."""
    zone = "zone-b"
    delay_s, loss = site.by((0.015, 0.003), (0.04, 0.01), (0.12, 0.03))
    turns = []
    for other in site.fleet.zones:
        scope = f"client>gateway:{zone}>{other.name}"
        turns += [site.turn("edge_delay_s", delay_s, scope), site.turn("edge_loss", loss, scope)]
    return Broken(tuple(turns), affected={"zone": (zone,)})


S29 = Scenario(
    id="S29",
    name="client-network",
    title="A longer and lossy way from the clients of one zone to their gateway",
    broken="edges client>gateway of zone-b: 15, 40, 120 ms more one way, 0.3, 1, 3 % of messages "
    "lost (weak, medium, strong)",
    expect="Clients of the zone see their first token later by a constant: one round trip on a "
    "kept connection, three on a new one; the gateway, the router and the engine see nothing, and "
    "what they serve at once grows no more than that. In life tokens come in steps of the round "
    "trip too; here first and last byte alone do.",
    why="The way is the same for every length. A new connection pays TCP's and TLS's round trips "
    "before the request's; a lost message waits for its retransmission time-out.",
    confusable=(
        Confusable("S27", "there one client alone is slow, and between its start and its own slot; "
                   "here all clients of the zone, between client and gateway"),
        Confusable("S30", "there the excess lies between gateway and engine, for all zones"),
    ),
    verdict="HOP client>gateway",
    step="hop",
    hop="client>gateway",
    cause="client network",
    breaks=_far_clients,
)  # fmt: skip


def _far_engines(site: Site) -> Broken:
    """Every way from routers to engines: longer, and uneven."""
    delay_s, jitter_s = site.by((0.01, 0.01), (0.02, 0.03), (0.06, 0.08))
    turns = [
        site.turn(knob, value, edge)
        for edge in ("router>engine", "gateway>engine")
        for knob, value in (("edge_delay_s", delay_s), ("edge_jitter_s", jitter_s))
    ]
    return Broken(tuple(turns), affected={"edge": ("router>engine",)})


S30 = Scenario(
    id="S30",
    name="engine-path",
    title="A congested fabric between router and engines, after a failover crosses it",
    broken="edges router>engine: 10, 20, 60 ms more one way, and an exponential delay of mean 10, "
    "30, 80 ms on top (weak, medium, strong)",
    expect="Router and gateway see first tokens later by twice the delay and the jitter; the "
    "engine's own times, its queue and its TPOT stay. Client gaps between tokens become uneven in "
    "life; here only first and last byte carry the jitter.",
    why="A request crosses the fabric once, its first token once more. Engines do not know how "
    "long their requests were under way.",
    confusable=(
        Confusable("S17", "there the transfer span between prefill and decode holds the excess and "
                   "grows with the prompt; here it is the call's way, and independent of length"),
        Confusable("S23", "a buffering gateway holds the answer alone and lets it go in regular "
                   "flushes; here the way there is late too"),
        Confusable("S29", "there the excess lies before the gateway, for one zone's clients"),
    ),
    verdict="HOP gateway>engine",
    step="hop",
    hop="router>engine",
    cause="engine path",
    breaks=_far_engines,
)  # fmt: skip

NETWORK: Final = (S19, S29, S30)
