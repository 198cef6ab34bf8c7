"""A second service beside a fleet's own: code completion, with a model and replicas of its own.

It comes in at the same gateways, so that what ails those ails both, and what ails the first
one's engines does not.
"""

from dataclasses import replace
from typing import Final

from tailburn.lab.fleet import ClientGroup, Fleet, Host, Pool, Replica, Router, Scheduler
from tailburn.lab.physics import Layout
from tailburn.lab.run.traffic import Traffic
from tailburn.lab.workload import named

MODEL: Final = "qwen3-32b"
GROUP: Final = "editor"
POOL: Final = "code"
WORKLOAD: Final = "azure-code"
_HOST: Final = "node-code"
_LAYOUT: Final = Layout("Qwen3-32B", "H200", 2)


def with_companion(fleet: Fleet, per_s: float) -> tuple[Fleet, Traffic, tuple[str, ...]]:
    """The fleet with the second service; who asks it; and the groups that ask the first."""
    first = fleet.clients.groups
    editor = replace(first[0], name=GROUP, share=0.5 * sum(group.share for group in first))
    pool = Pool(
        POOL,
        MODEL,
        _LAYOUT,
        (Replica("code-0", _HOST), Replica("code-1", _HOST)),
        Router(_HOST, stack=_router_stack(fleet)),
        scheduler=Scheduler(max_num_seqs=128),
    )
    both = replace(
        fleet,
        name=f"{fleet.name} and {POOL}",
        hosts=(*fleet.hosts, Host(_HOST, fleet.hosts[-1].zone, gpus=8, cores=192)),
        clients=replace(fleet.clients, groups=(*first, _plain(editor))),
        pools=(*fleet.pools, pool),
        models=(*fleet.models, MODEL),
    )
    traffic = Traffic(named(WORKLOAD), per_s, MODEL, (GROUP,))
    return both, traffic, tuple(group.name for group in first)


def _plain(group: ClientGroup) -> ClientGroup:
    """Editors give up sooner than people who read an answer."""
    return replace(group, patience_s=6.0, cancel_share=0.02)


def _router_stack(fleet: Fleet) -> str:
    return fleet.pools[0].router.stack
