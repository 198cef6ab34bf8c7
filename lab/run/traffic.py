"""Who asks a fleet: one workload or several, each with a model and clients of its own.

asked = Asked(traffic, fleet, seed=1, start_s=0, changes=())
for requests in asked.minutes(0):
    world.feed(requests)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tailburn.lab.fleet import Fleet
from tailburn.lab.records import Requests
from tailburn.lab.run.errors import RunError
from tailburn.lab.workload import Change, Profile, Workload, WorkloadError

_APART = 1 << 40
"""Ids of prefixes and sessions of two workloads never meet: each has so many of its own."""


@dataclass(frozen=True)
class Traffic:
    """One workload on a fleet: `per_s` in req/s over its week, None for its own rate.

    `model` names one of the fleet's; None: each request asks for the model that its workload
    names, where the fleet has it, else for the fleet's first. `groups`: which of the fleet's
    groups of clients ask; None: all of them.
    """

    profile: Profile
    per_s: float | None = None
    model: str | None = None
    groups: tuple[str, ...] | None = None


class Asked:
    """The requests of all workloads, minute by minute, in order of arrival."""

    def __init__(
        self,
        traffic: Sequence[Traffic],
        fleet: Fleet,
        *,
        group_of: np.ndarray,
        seed: int,
        start_s: int = 0,
        changes: Sequence[Change] = (),
    ) -> None:
        if not traffic:
            raise RunError("want at least one workload")
        self._parts = [
            Workload(one.profile, seed + i, one.per_s, start_s, _that_fit(changes, one.profile))
            for i, one in enumerate(traffic)
        ]
        _check_scopes(changes, traffic)
        self._models = [_model_index(one, fleet) for one in traffic]
        self._clients = _clients(traffic, fleet, group_of)

    def minutes(self, first: int = 0) -> Iterator[Requests]:
        """From minute `first` of the run on, without end."""
        streams = [part.minutes(first) for part in self._parts]
        while True:
            yield self._joined([next(stream) for stream in streams])

    def _joined(self, parts: list[Requests]) -> Requests:
        for number, part in enumerate(parts):
            part.model = self._models[number][part.model]
            part.client = self._clients[number][part.client]
            part.prefix = np.where(part.prefix > 0, part.prefix + number * _APART, 0)
            part.session = np.where(part.session > 0, part.session + number * _APART, 0)
        if len(parts) == 1:
            return parts[0]
        joined = Requests.join(parts)
        return joined.take(np.argsort(joined.arrival_ns, kind="stable"))


def _that_fit(changes: Sequence[Change], profile: Profile) -> list[Change]:
    return [change for change in changes if _fits(change, profile)]


def _fits(change: Change, profile: Profile) -> bool:
    try:
        profile.clients.scope(change.scope)
    except WorkloadError:
        return False
    return True


def _check_scopes(changes: Sequence[Change], traffic: Sequence[Traffic]) -> None:
    """WorkloadError for a scope that is in none of the workloads."""
    for change in changes:
        if not any(_fits(change, one.profile) for one in traffic):
            traffic[0].profile.clients.scope(change.scope)


def _model_index(one: Traffic, fleet: Fleet) -> np.ndarray:
    """The fleet's index of each model of a workload."""
    names = one.profile.clients.models
    if one.model is not None:
        if one.model not in fleet.models:
            raise RunError(f"no model {one.model!r} in the fleet; it has {', '.join(fleet.models)}")
        names = (one.model,) * len(names)
    known = [fleet.models.index(name) if name in fleet.models else 0 for name in names]
    return np.array(known, np.int16)


def _clients(traffic: Sequence[Traffic], fleet: Fleet, group_of: np.ndarray) -> list[np.ndarray]:
    """The fleet's client for each client of each workload; past its last the first again."""
    found = []
    begin: dict[tuple[str, ...] | None, int] = {}
    names = [group.name for group in fleet.clients.groups]
    for one in traffic:
        mine = np.arange(fleet.clients.count)
        if one.groups is not None:
            if unknown := [name for name in one.groups if name not in names]:
                raise RunError(f"no clients {unknown[0]!r} in the fleet; it has {', '.join(names)}")
            mine = mine[np.isin(group_of, [names.index(name) for name in one.groups])]
        first, asked = begin.get(one.groups, 0), len(one.profile.clients.names)
        found.append(mine[(first + np.arange(asked)) % len(mine)].astype(np.int32))
        begin[one.groups] = first + asked
    return found
