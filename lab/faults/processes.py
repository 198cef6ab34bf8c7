"""Faults of the engine's own processes: the CPU they need, the pauses they make."""

from typing import Final

import numpy as np

from tailburn.lab.faults.needs import with_spare
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site, Turn


def _quota(site: Site) -> Broken:
    """Everything on the engines' hosts needs more CPU time."""
    hosts, factor = site.fleet.engine_hosts, site.by(3.0, 7.0, 16.0)
    return Broken(
        tuple(site.turn("cpu_factor", factor, f"host:{host}") for host in hosts),
        affected={"host": hosts},
    )


S10 = Scenario(
    id="S10",
    name="host-cpu",
    title="Engines' hosts are short of CPU: a quota, or threads beyond it",
    broken="CPU time of everything on engines' hosts x 3, 7, 16 (weak, medium, strong)",
    expect="TPOT x 1.6, 3, 7.6 and TTFT p50 x 1.4, 2.3, 4.9 (weak, medium, strong); at medium "
    "longest gaps x 1.7 at p50, steps x 2 of what their batch predicts, the host's part of "
    "them from 16 to 44 %. GPUs idle between steps, throttling counts; collectives and kernels "
    "take as long as they did for such a batch.",
    why="Between two steps the CPU schedules, samples and launches, 2 ms on a healthy host and "
    "some for each sequence; the GPU waits for it. Requests stay longer, so the batch grows, and "
    "with it the CPU's own part.",
    confusable=(
        Confusable("S18", "slow collectives keep GPUs busy; here they idle between steps"),
        Confusable("S20", "a slow rank keeps its peers spinning; CPU normal"),
        Confusable("S28", "the same wall with many structured requests that wait for grammars"),
        Confusable("S33", "a larger batch by choice: steps as predicted"),
    ),
    verdict="THROUGHPUT (host)",
    step="throughput",
    hop="decode",
    cause="host CPU",
    breaks=_quota,
    needs=(with_spare,),
)  # fmt: skip


GROWS: Final = 8
"""Steps in which pauses grow, as what is to be collected does."""


def _pauses(site: Site) -> Broken:
    """A process of each engine pauses now and then."""
    pause_s, every_s = site.by((0.5, 60.0), (2.0, 60.0), (10.0, 90.0))
    edges = np.linspace(site.start_ns, site.end_ns, GROWS + 1).astype(np.int64).tolist()
    pauses = (
        Turn("gc_pause_s", pause_s * (0.5 + (i + 0.5) / GROWS), "all", *edges[i : i + 2])
        for i in range(GROWS)
    )
    return Broken((*pauses, site.turn("gc_every_s", every_s)), affected={"pool": site.pools})


S11 = Scenario(
    id="S11",
    name="gc-pause",
    title="Garbage collection of one rank's process stops all ranks",
    broken="a pause of 0.5 s a minute, 2 s a minute, 10 s every 90 s (weak, medium, strong) of one "
    "rank of each engine; it grows with the time, from half to one and a half of that",
    expect="p50 of everything as ever; at medium TTFT p99 x 3.7, and one request in ten or so has "
    "a gap of 2 s, all streams of a replica at the same instant, in a steady period. One "
    "rank launches nothing, its peers are 100 % busy in the collective.",
    why="The rank that collects launches no kernels; its peers spin in the collective until it "
    "comes. No stream of the replica gets a token meanwhile.",
    confusable=(
        Confusable("S18", "slow collectives slow every step; these stop a few"),
        Confusable("S19", "a bad link's bursts last; its peers all wait alike"),
        Confusable("S22", "compilation comes with new shapes, in clusters, and stops by itself"),
        Confusable("S5", "gaps by long prompts come with one, and are no longer than its prefill"),
    ),
    verdict="THROUGHPUT (host stall), not NCCL",
    step="throughput",
    hop="decode",
    cause="garbage collection",
    breaks=_pauses,
    needs=(with_spare,),
)  # fmt: skip

PROCESSES: Final = (S10, S11)
