"""Faults of one engine's hardware and host: a slow rank, shapes compiled anew, grammars."""

from typing import Final

import numpy as np

from tailburn.lab.faults.needs import with_spare
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site, Turn

S: Final = 10**9


def _straggler(site: Site) -> Broken:
    """One rank of one replica computes slower than its peers, which wait in the collective."""
    name = site.one_of(site.replicas())
    ratio = site.by(0.88, 0.75, 0.55)
    pool = next(p for p in site.fleet.pools if name in [r.name for r in p.replicas])
    rank = str(pool.layout.tensor_ranks - 1)
    return Broken(
        (site.turn("straggler_ratio", ratio, name),),
        affected={"replica": (name,), "rank": (rank,)},
    )


S20 = Scenario(
    id="S20",
    name="straggler-gpu",
    title="One GPU of a tensor-parallel replica is slower than its peers",
    broken="straggler_ratio of one replica: 0.88, 0.75, 0.55 of its peers' speed (weak, medium, "
    "strong); it is the replica's last rank",
    expect="On that replica prefill and TPOT up alike, by what the slow rank lacks in the parts "
    "that compute (medium: x 1.2 to 1.4); the others as before. Collectives wait long on the "
    "peers and hardly on the slow rank, whose clock and temperature are others.",
    why="All ranks meet after every layer: the slowest sets the pace, and its peers spend the "
    "difference waiting in the all-reduce, though the link is well.",
    confusable=(
        Confusable("S18", "slow collectives wait the same on all ranks; here the slow rank itself "
                   "hardly waits"),
        Confusable("S8", "slow memory on all ranks slows decode and not prefill, and nobody waits "
                   "longer for a peer"),
    ),
    verdict="THROUGHPUT (rank), not NCCL",
    step="throughput",
    hop="decode",
    cause="straggling rank",
    breaks=_straggler,
)  # fmt: skip


def _compiles(site: Site) -> Broken:
    """Kernels are compiled in serving; a cache that is too small forgets them again."""
    took_s, every_s = site.by((0.5, 600.0), (1.0, 300.0), (2.0, 150.0))
    draw = np.random.default_rng(site.seed)
    turns = [site.turn("compile_s", took_s)]
    at = site.start_ns
    while at < site.end_ns:
        turns.append(Turn("forget_shapes", 1.0, "all", at, min(at + S, site.end_ns)))
        at += int(every_s * draw.uniform(0.7, 1.3) * S) + S
    return Broken(tuple(turns), affected={"pool": site.pools})


S22 = Scenario(
    id="S22",
    name="compile-stall",
    title="Kernels for new shapes are compiled while requests are served",
    broken="compile_s 0.5, 1, 2 s for the first step of each shape; the shapes are forgotten again "
    "every 10, 5, 2.5 minutes or so (weak, medium, strong)",
    expect="A handful of isolated gaps of a second between tokens, of all streams of a replica at "
    "once, then none until shapes are forgotten; first tokens that fall into them are late, so p99 "
    "and not p50. Nothing is preempted, and prefill is as ever.",
    why="A step that needs a kernel which is not there waits for its compiler; after some steps "
    "all shapes of the traffic are there. The engine counts its compilations.",
    confusable=(
        Confusable("S11", "pauses of garbage collection come in a steady period; these come in a "
                   "cluster, at each shape's first step, and stop by themselves"),
        Confusable("S5", "gaps by long prompts are as long as their prefill and fall on steps with "
                   "a full token budget; these fall on steps of any size"),
    ),
    verdict="THROUGHPUT (compile stall)",
    step="throughput",
    hop="decode",
    cause="compile stall",
    breaks=_compiles,
)  # fmt: skip


def _grammars(site: Site) -> Broken:
    """Many schemas at once: they wait to be compiled, and their threads eat the CPU quota."""
    share, grammar_s, cpu = site.by((0.2, 0.4, 4.0), (0.4, 1.2, 11.0), (0.6, 1.5, 18.0))
    hosts = site.fleet.engine_hosts
    return Broken(
        (
            site.turn("grammar_s", grammar_s),
            *(site.turn("cpu_factor", cpu, f"host:{host}") for host in hosts),
        ),
        (site.change("structured", share),),
        affected={"host": hosts},
    )


S28 = Scenario(
    id="S28",
    name="grammar-burst",
    title="A burst of new JSON schemas: grammars compile, and exhaust the engine's CPU quota",
    broken="structured answers for 20, 40, 60 % of requests, their grammars new and 0.4, 1.2, 1.5 "
    "s to compile, and CPU time on the engines' hosts 4, 11, 18 times as long, for the compile "
    "threads are throttled with everything else (weak, medium, strong)",
    expect="Structured requests wait for their grammar before they are scheduled; ITL of all goes "
    "up by the host's part of a step (TPOT x 1.9, 4.8, 8.9: weak, medium, strong; reports have "
    "x 5 to x 8). GPUs idle between steps, the quota throttles.",
    why="A pool sized by the machine's cores under a quota of a few of them: the scheduler's own "
    "thread is throttled with the compilers.",
    confusable=(
        Confusable("S10", "the same wall of CPU, but there the share of structured requests is as "
                   "ever, and none waits for a grammar"),
        Confusable("S21", "there the tokenizer's span holds the wait, for all requests, and TPOT "
                   "is normal"),
    ),
    verdict="THROUGHPUT (host)",
    step="throughput",
    hop="decode",
    cause="grammar compilation",
    breaks=_grammars,
    needs=(with_spare,),
)  # fmt: skip

HOSTS: Final = (S20, S22, S28)
