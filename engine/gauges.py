"""What the metrics of engines and gateways show of requests inside them, for each SLO.

A gauge counts for an SLO where its labels tell every dimension that the SLO selects or is `by`.
An engine does not know the route of a request, or its type: an SLO that does has no such gauge,
rather than one of other people's requests.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.slo.model import Slo

TOLD: Final = ("tenant", "service", "model", "pool", "replica", "node", "gpu", "zone")
"""Dimensions that rows of SIGNALS tell: columns of them, and labels of a target or its series."""

STALE_NS: Final = 150_000_000_000
"""Two and a half minutes without a reading: what a target said before is no longer so."""

AVERAGED_NS: Final = 120_000_000_000
"""Queue and cache are told as the mean of two minutes."""

UP: Final = "up"
WAITING: Final = "requests_waiting"
RUNNING: Final = "requests_running"
KV: Final = "kv_usage_ratio"
GATEWAY_WAITING: Final = "gateway_requests_waiting"
GATEWAY_RUNNING: Final = "gateway_requests_running"
_READ: Final = pa.array([UP, WAITING, RUNNING, KV, GATEWAY_WAITING, GATEWAY_RUNNING])
_IN_FLIGHT: Final = ((WAITING, RUNNING), (GATEWAY_WAITING,), (GATEWAY_RUNNING,))

Key = tuple[str, tuple[str, ...]]
"""An SLO's name and the values of its `by`."""

_Target = tuple[str, str]
_Series = tuple[str, str, str, str]  # name, labels, tenant, service


@dataclass(frozen=True)
class Replicas:
    """The replicas of an SLO, on the mean of them and of two minutes."""

    count: int  # those that show a KV cache
    waiting: float | None  # requests in the queue of each
    kv_ratio: float | None  # of the KV cache used


@dataclass
class _Round:
    """One reading of a target."""

    at_ns: int
    values: dict[_Series, float] = field(default_factory=dict)


class EngineGauges:
    """The readings of the last minutes. One thread at a time."""

    def __init__(self, slos: Iterable[Slo]) -> None:
        self._slos = tuple(slos)
        self._rounds: dict[_Target, deque[_Round]] = defaultdict(deque)
        self._keys: dict[_Series, tuple[Key, ...]] = {}
        self._seen = False

    def set_back(self, now_ns: int, by_ns: int) -> None:
        """Readings up to the last that lies ahead of `now_ns` were timed by a clock since set back.

        They are so much older than they say.
        """
        for rounds in self._rounds.values():
            ahead = [i for i, one in enumerate(rounds) if one.at_ns > now_ns]
            for _, one in zip(range(ahead[-1] + 1 if ahead else 0), rounds, strict=False):
                one.at_ns -= by_ns

    def take(self, signals: pa.Table) -> None:
        """Rows of SIGNALS in the order in which they were read."""
        rows = signals.filter(pc.is_in(signals["name"].cast(pa.string()), value_set=_READ))
        columns = ("received_ns", "tenant", "service", "resource", "name", "labels", "value")
        for at_ns, tenant, service, resource, *series, value in zip(
            *(rows[column].to_pylist() for column in columns), strict=True
        ):
            rounds = self._rounds[tenant, resource]
            if not rounds or rounds[-1].at_ns != at_ns:
                rounds.append(_Round(at_ns))
            name, labels = series
            if name != UP:
                self._seen = True
                rounds[-1].values[name, labels, tenant, service or ""] = value

    def trim(self, now_ns: int) -> None:
        """Forget what no question about `now_ns` or later needs."""
        for target, rounds in list(self._rounds.items()):
            while rounds and rounds[0].at_ns <= now_ns - STALE_NS:
                rounds.popleft()
            if not rounds:
                del self._rounds[target]
        live = {series for rounds in self._rounds.values() for r in rounds for series in r.values}
        self._keys = {series: keys for series, keys in self._keys.items() if series in live}

    def in_flight(self, at_ns: int) -> dict[Key, float]:
        """Requests inside at a time, waiting or running; none for what nobody shows.

        A gateway's requests are in the engines too, so the larger of both counts.
        """
        newest = [rounds[-1] for rounds in self._before(at_ns)]
        kinds = [self._summed(newest, names) for names in _IN_FLIGHT]
        keys = dict.fromkeys(key for kind in kinds for key in kind)
        return {key: max(kind.get(key, 0.0) for kind in kinds) for key in keys}

    def replicas(self, at_ns: int) -> dict[Key, Replicas]:
        """Queue and cache of each SLO's replicas over the two minutes before a time."""
        waiting: dict[Key, float] = {}
        kv: dict[Key, list[float]] = defaultdict(list)
        names: dict[Key, set[str]] = defaultdict(set)
        for series, mean in self._means(at_ns).items():
            for key in self._keys_of(series):
                if series[0] == WAITING:
                    waiting[key] = waiting.get(key, 0.0) + mean
                elif series[0] == KV:
                    kv[key].append(mean)
                    names[key].add(json.loads(series[1]).get("replica", ""))
        return {
            key: Replicas(
                count=len(names[key]),
                waiting=waiting[key] / len(names[key]) if key in waiting else None,
                kv_ratio=sum(shares) / len(shares),
            )
            for key, shares in kv.items()
        }

    def unmapped(self, at_ns: int) -> dict[str, str]:
        """SLOs without a gauge of requests in flight, and why."""
        shown = {name for name, _ in self.in_flight(at_ns)}
        return {slo.name: self.why_not(slo) for slo in self._slos if slo.name not in shown}

    def why_not(self, slo: Slo) -> str:
        """Why no gauge counts for an SLO, where none does."""
        if untold := untold_by_engines(slo):
            return f"no metric of an engine tells {', '.join(untold)}"
        if not self._seen:
            return "no engine's metrics are read"
        asked = ", ".join([*(f"{k}={v}" for k, v in slo.select.items()), *slo.by])
        return f"no series that is read has {asked}"

    def _before(self, at_ns: int) -> list[list[_Round]]:
        """The rounds of each target up to a time that are not stale then."""
        found = (
            [r for r in rounds if at_ns - STALE_NS < r.at_ns <= at_ns]
            for rounds in self._rounds.values()
        )
        return [rounds for rounds in found if rounds]

    def _summed(self, rounds: Sequence[_Round], names: Sequence[str]) -> dict[Key, float]:
        totals: dict[Key, float] = {}
        for one in rounds:
            for series, value in one.values.items():
                if series[0] in names:
                    for key in self._keys_of(series):
                        totals[key] = totals.get(key, 0.0) + value
        return totals

    def _means(self, at_ns: int) -> dict[_Series, float]:
        found: dict[_Series, list[float]] = defaultdict(list)
        for rounds in self._before(at_ns):
            for one in rounds:
                if one.at_ns > at_ns - AVERAGED_NS:
                    for series, value in one.values.items():
                        found[series].append(value)
        return {series: sum(values) / len(values) for series, values in found.items()}

    def _keys_of(self, series: _Series) -> tuple[Key, ...]:
        if series not in self._keys:
            _, labels, tenant, service = series
            told = json.loads(labels) | {"tenant": tenant, "service": service}
            self._keys[series] = tuple(k for slo in self._slos if (k := _key_of(slo, told)))
        return self._keys[series]


def untold_by_engines(slo: Slo) -> tuple[str, ...]:
    """Dimensions that the SLO names and no gauge can tell."""
    return tuple(name for name in dict.fromkeys((*slo.select, *slo.by)) if name not in TOLD)


def _key_of(slo: Slo, told: Mapping[str, str]) -> Key | None:
    """Which series of the SLO a gauge with these labels counts for."""
    if any(told.get(name) != value for name, value in slo.select.items()):
        return None
    values = tuple(told.get(name, "") for name in slo.by)
    return (slo.name, values) if all(values) else None
