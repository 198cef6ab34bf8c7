"""Which GPU of which host belongs to which rank of which replica."""

from dataclasses import dataclass

from tailburn.lab.fleet import Fleet
from tailburn.lab.physics import Layout


@dataclass(frozen=True)
class Card:
    """One GPU. `replica` -1: nobody's. `rank`: its number in the replica, from 0."""

    slot: int
    gpu: str
    uuid: str
    replica: int
    rank: int
    ranks: int
    """Tensor-parallel ranks of a stage of its replica; 0: nobody's."""
    hosts: int
    """Hosts that the replica lies on."""


def cards_of(fleet: Fleet) -> tuple[tuple[Card, ...], ...]:
    """The GPUs of each host. A replica takes its own host's, in order; what does not fit lies
    on hosts that no replica names, then on any with room left. One that finds no room at all is
    given GPUs that its host should have; further ranks of one that did are not shown."""
    slots = [host.gpus for host in fleet.hosts]
    free = [list(range(count)) for count in slots]
    index = {host.name: i for i, host in enumerate(fleet.hosts)}
    named = {replica.host for replica in fleet.replicas}
    owner: dict[tuple[int, int], tuple[int, int]] = {}
    left: list[tuple[int, int]] = []
    for r, replica in enumerate(fleet.replicas):
        need = _ranks(fleet.pool_of(r).layout)
        at = index[replica.host]
        own, free[at] = free[at][:need], free[at][need:]
        owner |= {(at, slot): (r, rank) for rank, slot in enumerate(own)}
        left += [(r, rank) for rank in range(len(own), need)]
    order = sorted(range(len(fleet.hosts)), key=lambda i: fleet.hosts[i].name in named)
    for at in order:
        while left and free[at]:
            owner[(at, free[at].pop(0))] = left.pop(0)
    housed = {r for r, _ in owner.values()}
    for r, rank in left:
        at = index[fleet.replicas[r].host]
        if r not in housed:
            owner[(at, slots[at])] = r, rank
            slots[at] += 1
    spread: dict[int, set[int]] = {}
    for (at, _), (r, _) in owner.items():
        spread.setdefault(r, set()).add(at)
    gpu = fleet.pools[0].layout.gpu

    def of_host(at: int) -> tuple[Card, ...]:
        here = range(slots[at])
        return tuple(_card(fleet, at, slot, owner.get((at, slot)), spread, gpu) for slot in here)

    return tuple(of_host(at) for at in range(len(fleet.hosts)))


def _card(
    fleet: Fleet,
    at: int,
    slot: int,
    own: tuple[int, int] | None,
    spread: dict[int, set[int]],
    gpu: str,
) -> Card:
    uuid = f"GPU-{at:08x}-0000-4000-8000-{slot:012x}"
    if own is None:
        return Card(slot, gpu, uuid, -1, 0, 0, 1)
    layout = fleet.pool_of(own[0]).layout
    hosts = max(len(spread[own[0]]), -(-_ranks(layout) // max(fleet.hosts[at].gpus, 1)))
    return Card(slot, layout.gpu, uuid, *own, layout.tensor_ranks, hosts)


def _ranks(layout: Layout) -> int:
    """GPUs of a replica."""
    return max(layout.tensor_ranks * layout.stages, layout.expert_ranks)
