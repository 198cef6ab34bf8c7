"""All replicas slower by a factor and nothing else: what detection is promised in."""

from typing import Final

from tailburn.lab.faults.needs import with_spare
from tailburn.lab.faults.scenario import Broken, Scenario, Site
from tailburn.lab.faults.throughput import S9

FACTORS: Final = {"weak": 1.25, "medium": 1.5, "strong": 2.0}


def _slower(site: Site) -> Broken:
    factor = FACTORS[site.severity]
    return Broken((site.turn("kernel_factor", factor),), affected={"pool": site.pools})


SLOWDOWN: Final = Scenario(
    id="slowdown",
    name="slowdown",
    title="All replicas compute more slowly",
    broken="kernel_factor of all replicas 1.25, 1.5, 2 (weak, medium, strong)",
    expect="TTFT and TPOT up by about the factor, by more where queues build.",
    why="All kernels take longer, those that read and those that multiply alike.",
    confusable=(),
    verdict="THROUGHPUT",
    step="throughput",
    hop=S9.hop,
    cause="kernels",
    breaks=_slower,
    needs=(with_spare,),
)
