"""Faults of links between GPUs: hand-off of KV, collectives within a host."""

from typing import Final

from tailburn.lab.faults.needs import disaggregated, with_small_model, with_spare
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.faults.traffics import two_models
from tailburn.lab.fleet import Role

TCP_GBPS: Final = 10.0
"""100 GbE, as all streams together fill it."""


def _tcp(site: Site) -> Broken:
    """KV goes from prefill to decode over TCP."""
    flow_gbps, latency_s = site.by((0.7, 0.02), (0.22, 0.03), (0.11, 0.04))
    pools = tuple(p.name for p in site.fleet.pools if p.role == Role.DECODE)
    return Broken(
        (
            site.turn("transfer_gbps", TCP_GBPS),
            site.turn("transfer_flow_gbps", flow_gbps),
            site.turn("transfer_latency_s", latency_s),
        ),
        affected={"pool": pools},
    )


S17 = Scenario(
    id="S17",
    name="kv-transfer",
    title="KV goes from prefill to decode over TCP in place of RDMA",
    broken="hand-off from 40 GB/s and 3 ms to 10 GB/s, of which one hand-off gets 0.7, 0.22, 0.11 "
    "GB/s, and 20, 30, 40 ms (weak, medium, strong); prefill and decode apart",
    expect="TTFT of every request up by its hand-off, in proportion to its prompt (p50 + 0.5, 1.5, "
    "3 s; medium: p99 + 6 s); TPOT after the first token normal. The "
    "transfer's span owns it, prefill replicas hold KV meanwhile, RDMA counters flat, TCP "
    "bytes up.",
    why="328 kB a token go through a stream of TCP, that copies and acknowledges at a fraction of "
    "what the link could carry: many hand-offs go on at once, each slow.",
    confusable=(
        Confusable("S16", "a load from a tier is of requests with a hit; a hand-off of all"),
        Confusable("S30", "a slow way from gateway to engine has no part in the transfer's span"),
        Confusable("S1", "in a surge the wait is the scheduler's, not the transfer's"),
    ),
    verdict="NCCL/NET (transfer)",
    step="nccl",
    hop="kv_transfer",
    cause="KV transfer",
    breaks=_tcp,
    base=disaggregated,
)  # fmt: skip


def _collectives(site: Site) -> Broken:
    """All-reduce within hosts is slower."""
    pools = tuple(p.name for p in site.fleet.pools if p.layout.tensor_ranks > 1)
    factor = site.by(1.6, 3.0, 4.5)
    return Broken(
        tuple(site.turn("allreduce_factor", factor, f"pool:{pool}") for pool in pools),
        affected={"pool": pools},
    )


S18 = Scenario(
    id="S18",
    name="slow-all-reduce",
    title="All-reduce within a host is slow: peer to peer or NVLink off",
    broken="all-reduce time x 1.6, 3, 4.5 (weak, medium, strong) of all tensor-parallel replicas",
    expect="Steps that only decode x 1.07, 1.25, 1.48 of what their batch predicts (weak, medium, "
    "strong), prefill x 1.2, 1.7, 2.6 with the rest of a busy batch, TPOT x 1.2, 1.8, 3.1, "
    "for the batch grows. Collective times up on all ranks alike, NVLink bytes down, PCIe "
    "up; models on one GPU as ever. For one step of this layout all-reduce x 3 is x 1.25, "
    "less than the 1.67 to 1.91 of layouts that reports speak of.",
    why="Two all-reduces a layer stand in every step, of decode and prefill alike; all ranks wait "
    "the same. A model on one GPU has none.",
    confusable=(
        Confusable("S8", "slow memory slows models on one GPU as well, and prefill hardly"),
        Confusable("S20", "a straggler's peers wait long and itself hardly; here all wait alike"),
        Confusable("S10", "a slow host leaves GPUs idle; here they are busy in the collective"),
        Confusable("S6", "a neighbour's context is in the batch, which predicts its steps"),
    ),
    verdict="THROUGHPUT -> NCCL (all-reduce)",
    step="nccl",
    hop="decode",
    cause="all-reduce",
    breaks=_collectives,
    needs=(with_spare, with_small_model),
    traffic=two_models,
)  # fmt: skip

LINKS: Final = (S17, S18)
