"""All scenarios, by id and by name: `scenario("S8")` is `scenario("memory-slowdown")`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tailburn.lab.faults.capacity import CAPACITY
from tailburn.lab.faults.clients import CLIENTS
from tailburn.lab.faults.controls import CONTROLS
from tailburn.lab.faults.hops import HOPS
from tailburn.lab.faults.hosts import HOSTS
from tailburn.lab.faults.kv import KV
from tailburn.lab.faults.links import LINKS
from tailburn.lab.faults.needs import for_mondays, near_cap
from tailburn.lab.faults.neighbours import NEIGHBOURS
from tailburn.lab.faults.network import NETWORK
from tailburn.lab.faults.processes import PROCESSES
from tailburn.lab.faults.queue import QUEUE
from tailburn.lab.faults.scenario import FaultError, Scenario
from tailburn.lab.faults.throughput import THROUGHPUT
from tailburn.lab.fleet import Fleet, standard
from tailburn.lab.nearest import did_you_mean

_LISTS: Final[tuple[tuple[Scenario, ...], ...]] = (
    QUEUE,
    NEIGHBOURS,
    THROUGHPUT,
    PROCESSES,
    KV,
    LINKS,
    NETWORK,
    HOSTS,
    HOPS,
    CLIENTS,
    CAPACITY,
    CONTROLS,
)


PLAIN: Final = (near_cap, for_mondays, standard)
"""Kinds of fleets that differ in how much room they have alone, the tightest first."""


def _by_id() -> dict[str, Scenario]:
    listed = (s for each in _LISTS for s in each)
    found = sorted(listed, key=lambda s: (s.id[0] == "N", int(s.id[1:])))
    by_id = {s.id: s for s in found}
    if len(by_id) < len(found) or len({s.name for s in found}) < len(found):
        raise FaultError("two scenarios have one id or name")
    return by_id


SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(_by_id())
"""Every scenario by its id: S1, S2, ..., N1, ..."""


def scenario(text: str) -> Scenario:
    """The scenario of that id or name, in any case; FaultError with the nearest otherwise."""
    wanted = text.strip().lower()
    for each in SCENARIOS.values():
        if wanted in (each.id.lower(), each.name):
            return each
    known = [word for s in SCENARIOS.values() for word in (s.id, s.name)]
    raise FaultError(f"no scenario {text!r}; {did_you_mean(text.strip(), known, cutoff=0.0)}")


def fleet_for(scenarios: Sequence[Scenario], per_s: float) -> Fleet:
    """One fleet on which all of them can happen; FaultError where there is none.

    A scenario of a plain fleet can happen on any other too.
    """
    bases = list(dict.fromkeys(s.base for s in scenarios))
    special = [base for base in bases if base not in PLAIN]
    if len(special) > 1:
        names = " and ".join(s.id for s in scenarios if s.base in special)
        raise FaultError(f"{names} need fleets of different kinds; run them one by one")
    plain = [base for base in PLAIN if base in bases]
    fleet = [*special, *plain, standard][0](per_s)
    needs = tuple(dict.fromkeys(need for s in scenarios for need in s.needs))
    for need in needs:
        fleet = need(fleet, per_s)
    return fleet
