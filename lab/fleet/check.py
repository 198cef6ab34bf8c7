"""Whether a fleet holds together: names that name something, figures that can be."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from math import isfinite

from tailburn.lab.fleet.errors import FleetError, unknown
from tailburn.lab.fleet.parts import Fleet, Pool, Role

_ZERO_MEANS_NONE = 0


def check(fleet: Fleet) -> Fleet:
    """The fleet itself; FleetError for the first thing that is wrong with it."""
    zones = _once("zone", (z.name for z in fleet.zones))
    hosts = _once("host", (h.name for h in fleet.hosts))
    pools = _once("pool", (p.name for p in fleet.pools))
    _once("gateway", (g.name for g in fleet.gateways))
    _once("replica", (r.name for r in fleet.replicas))
    for host in fleet.hosts:
        _in(f"host {host.name!r}", "zone", host.zone, zones)
    for group in fleet.clients.groups:
        _in(f"clients {group.name!r}", "zone", group.zone, zones)
    for gateway in fleet.gateways:
        _in(f"gateway {gateway.name!r}", "host", gateway.host, hosts)
    if not fleet.gateways or fleet.clients.count < 1 or not fleet.clients.groups:
        raise FleetError(f"fleet {fleet.name!r}: want a gateway, a client and a group of clients")
    for pool in fleet.pools:
        _pool(pool, fleet, hosts, pools)
    for model in fleet.models:
        if not any(p.model == model and p.role != Role.PREFILL for p in fleet.pools):
            raise FleetError(f"model {model!r}: no pool serves it")
    for route in fleet.routes:
        if route.pool is not None:
            _in(f"route {route.name!r}", "pool", route.pool, pools)
    _figures(fleet, f"fleet {fleet.name!r}")
    return fleet


def _pool(pool: Pool, fleet: Fleet, hosts: list[str], pools: list[str]) -> None:
    where = f"pool {pool.name!r}"
    _in(where, "model", pool.model, fleet.models)
    if not pool.replicas:
        raise FleetError(f"{where}: want at least one replica")
    for replica in pool.replicas:
        _in(f"replica {replica.name!r}", "host", replica.host, hosts)
    if pool.router.host is not None:
        _in(f"router of {where}", "host", pool.router.host, hosts)
    if (pool.prefill is not None) != (pool.role == Role.DECODE):
        raise FleetError(f"{where}: a decode pool names its prefill pool, no other does")
    if pool.prefill is not None:
        _in(where, "pool", pool.prefill, pools)
        peer = next(p for p in fleet.pools if p.name == pool.prefill)
        if peer.role != Role.PREFILL or peer.model != pool.model:
            raise FleetError(f"{where}: {peer.name!r} does not prefill {pool.model!r}")
    if pool.tokenizer.threads < 1 or pool.scheduler.max_num_seqs < 1:
        raise FleetError(f"{where}: want at least 1 tokenizer thread and 1 sequence")


def _once(what: str, names: Iterable[str]) -> list[str]:
    listed = list(names)
    if double := [n for n, times in Counter(listed).items() if times > 1]:
        raise FleetError(f"{what} {double[0]!r} is there twice")
    if not listed:
        raise FleetError(f"want at least one {what}")
    return listed


def _in(where: str, what: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise unknown(where, what, name, names)


def _figures(part: object, where: str) -> None:
    """Every number in it is finite and not negative; a clock may be behind."""
    if isinstance(part, tuple):
        for one in part:
            _figures(one, where)
        return
    if isinstance(part, bool) or not is_dataclass(part):
        return
    where = f"{where}, {getattr(part, 'name', type(part).__name__)!r}"
    for each in fields(part):
        value = getattr(part, each.name)
        if isinstance(value, int | float) and not each.name.startswith("clock_"):
            if not isfinite(value) or value < _ZERO_MEANS_NONE:
                raise FleetError(f"{where}: {each.name} = {value}: want a number of at least 0")
        else:
            _figures(value, where)
