"""Which things a scope names.

all                           everything of the knob's level
replica-3, gateway:gateway-1  one thing by its name, with or without its kind
pool:main, host:node-2        all replicas of a pool, or on a host
zone:zone-a                   all things in a zone; edges with an end there
group:app, client:17          clients of a group, one client by number
client>gateway                all edges of a kind
client>gateway:office>zone-a  one edge
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.fleet.arrays import EDGES, FleetArrays
from tailburn.lab.world.knobs import KnobError, Level

I64 = NDArray[np.int64]
Find = Callable[[str], I64]


def things(level: Level, scope: str, fleet: FleetArrays) -> I64:
    """Indices of a level's things that the scope names; KnobError when it names none."""
    if scope == "all":
        return np.arange(len(fleet.knobs[level]))
    if level == Level.EDGE:
        return _edges(scope, fleet)
    what, colon, name = scope.partition(":")
    kinds = _kinds(level, fleet)
    if not colon:
        what, name = next(iter(kinds), ""), scope
    if what not in kinds:
        accepted = ", ".join(f"{kind}:NAME" for kind in kinds)
        raise KnobError(f"scope {scope!r}: {level.name.lower()} knobs take all, {accepted}")
    return kinds[what](name)


def _kinds(level: Level, fleet: FleetArrays) -> dict[str, Find]:
    """How each kind of name is looked up at a level; the first is the level's own."""
    f = fleet.fleet
    zones = [z.name for z in f.zones]
    host_zone = [zones.index(h.zone) for h in f.hosts]
    if level == Level.CLIENT:
        groups = [g.name for g in f.clients.groups]
        count = range(f.clients.count)
        return {
            "client": lambda name: _equal("client", name, [str(i) for i in count], count),
            "group": lambda name: _equal("group", name, groups, fleet.client_group),
            "zone": lambda name: _equal("zone", name, zones, fleet.client_zone),
        }
    if level == Level.GATEWAY:
        names = [g.name for g in f.gateways]
        return {
            "gateway": lambda name: _equal("gateway", name, names, range(len(names))),
            "zone": lambda name: _equal("zone", name, zones, fleet.gateway_zone),
        }
    if level == Level.POOL:
        names = [p.name for p in f.pools]
        return {"pool": lambda name: _equal("pool", name, names, range(len(names)))}
    hosts = [h.name for h in f.hosts]
    if level == Level.HOST:
        return {
            "host": lambda name: _equal("host", name, hosts, range(len(hosts))),
            "zone": lambda name: _equal("zone", name, zones, host_zone),
        }
    if level == Level.REPLICA:
        names = [r.name for r in f.replicas]
        pools = [p.name for p in f.pools]
        return {
            "replica": lambda name: _equal("replica", name, names, range(len(names))),
            "pool": lambda name: _equal("pool", name, pools, fleet.replica_pool),
            "host": lambda name: _equal("host", name, hosts, fleet.replica_host),
            "zone": lambda name: _equal("zone", name, zones, fleet.replica_zone),
        }
    return {}


def _equal(what: str, name: str, names: list[str], of: Iterable[int]) -> I64:
    if name not in names:
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise KnobError(f"no {what} {name!r}; there are {shown}")
    return np.flatnonzero(np.asarray(list(of)) == names.index(name))


def _edges(scope: str, fleet: FleetArrays) -> I64:
    """Edges of `kind`, `kind:zone`, `kind:from>to` or `zone:name`."""
    zones = [z.name for z in fleet.fleet.zones]
    shape = (len(EDGES), len(zones), len(zones))
    index = np.arange(np.prod(shape)).reshape(shape)
    kind, _, ends = scope.partition(":")
    if kind == "zone":
        at = int(_equal("zone", ends, zones, range(len(zones)))[0])
        return np.asarray(np.union1d(index[:, at, :], index[:, :, at]), np.int64)
    if kind not in EDGES:
        raise KnobError(f"scope {scope!r}: edges are {', '.join(EDGES)}, zone:NAME or all")
    of_kind = index[EDGES.index(kind)]
    if not ends:
        return np.asarray(of_kind.reshape(-1), np.int64)
    here, _, there = ends.partition(">")
    a = int(_equal("zone", here, zones, range(len(zones)))[0])
    if not there:
        return np.asarray(np.union1d(of_kind[a, :], of_kind[:, a]), np.int64)
    return np.asarray(of_kind[a, _equal("zone", there, zones, range(len(zones)))], np.int64)
