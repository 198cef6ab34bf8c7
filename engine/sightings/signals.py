"""Starts, settings, drivers and clocks, as the metrics of engines, gateways and GPUs tell them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.sightings.sightings import (
    Dimensions,
    Sighting,
    Thing,
    cut,
    dimensions,
)

START: Final = "process_start_seconds"
CONFIG: Final = "engine_config"
DRIVER: Final = "gpu_driver"
CLOCK: Final = "gpu_sm_clock_hz"
CLOCK_EVENTS: Final = "gpu_clock_events"
READ: Final = (START, CONFIG, DRIVER, CLOCK, CLOCK_EVENTS)

SETTINGS: Final = ("block_size", "cache_dtype", "gpu_memory_utilization", "prefix_caching")
"""Labels of `engine_config` that an operator sets. What an engine works out by itself, such as its
number of blocks, is another one at each start."""

REASONS: Final = ("hw_power_brake", "hw_slowdown", "hw_thermal", "power_cap", "sw_thermal")
"""Why a GPU clocks down that has work; the others are idleness, or somebody's setting."""
HELD: Final = "held back"
FREE: Final = "free"

DRIVER_NAME: Final = "GPU driver"
COLUMNS: Final = ("received_ns", "tenant", "service", "resource", "name", "labels", "value")
"""What is read of SIGNALS."""


class Row(NamedTuple):
    """A row of SIGNALS, its labels read."""

    at_ns: int
    tenant: str
    service: str
    instance: str
    name: str
    labels: Mapping[str, str]
    value: float

    @property
    def replica(self) -> str:
        return cut(self.labels.get("replica") or self.instance)

    @property
    def place(self) -> Dimensions:
        """What all replicas of a service, a model and a pool have in common."""
        told = {name: self.labels.get(name) for name in ("model", "pool")}
        return dimensions({"service": self.service, **told})


def seen_in_signals(signals: pa.Table) -> list[Sighting]:
    """What rows of SIGNALS show; none for rows that are about something else."""
    rows = list(rows_of(signals, READ))
    found = [
        sighting
        for row in rows
        if (read := _READERS.get(row.name)) is not None
        for sighting in read(row)
    ]
    return found + list(_clocks(rows))


def rows_of(signals: pa.Table, names: Sequence[str]) -> Iterator[Row]:
    """The rows of these signals."""
    wanted = signals.filter(pc.is_in(signals["name"].cast(pa.string()), value_set=pa.array(names)))
    for at_ns, tenant, service, resource, name, labels, value in zip(
        *(wanted[column].to_pylist() for column in COLUMNS), strict=True
    ):
        instance = json.loads(resource or "{}").get("service.instance.id", "")
        told = json.loads(labels or "{}")
        yield Row(at_ns, tenant or "", service or "", instance, name, told, value)


def _started(row: Row) -> Iterator[Sighting]:
    what = row.service or row.labels.get("model") or "process"
    thing = Thing(row.tenant, Kind.RESTART, cut(what), dimensions({"service": row.service}))
    # Of one process for each target: a node and its exporters restart apart.
    also = dimensions({name: row.labels.get(name) for name in ("model", "pool", "node")})
    yield _sighting(row, thing, "replica", row.replica, f"{row.value:.3f}", also)


def _configured(row: Row) -> Iterator[Sighting]:
    for setting in SETTINGS:
        if value := row.labels.get(setting):
            what = f"{row.service or row.labels.get('source', 'engine')} {setting}"
            thing = Thing(row.tenant, Kind.CONFIG, cut(what), row.place)
            yield _sighting(row, thing, "replica", row.replica, cut(value))


def _driven(row: Row) -> Iterator[Sighting]:
    if version := row.labels.get("driver"):
        thing = Thing(row.tenant, Kind.DRIVER, DRIVER_NAME)
        yield _sighting(row, thing, "node", _node(row), cut(version))


def _clocks(rows: list[Row]) -> Iterator[Sighting]:
    """Of every GPU that is told in a minute, whether each reason held it back then."""
    seen: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.name in (CLOCK, CLOCK_EVENTS) and (gpu := _gpu(row)):
            seen[row.at_ns // MINUTE_NS, row.tenant, gpu].append(row)
    for (_, tenant, gpu), told in seen.items():
        held = {row.labels.get("reason") for row in told if _is_event(row)}
        also = dimensions({"node": _node(told[0])})
        first, last = min(r.at_ns for r in told), max(r.at_ns for r in told)
        for reason in REASONS:
            thing = Thing(tenant, Kind.THROTTLE, f"GPU clock, {reason}")
            value = HELD if reason in held else FREE
            yield Sighting(first, last, thing, "gpu", cut(gpu), value, also)


def _is_event(row: Row) -> bool:
    return row.name == CLOCK_EVENTS and row.value > 0


def _node(row: Row) -> str:
    return cut(row.labels.get("node") or row.instance)


def _gpu(row: Row) -> str:
    """One GPU among all nodes'."""
    if uuid := row.labels.get("gpu_uuid"):
        return uuid
    index = row.labels.get("gpu", "")
    return f"{_node(row)}/{index}" if index else ""


def _sighting(
    row: Row, thing: Thing, dimension: str, member: str, value: str, also: Dimensions = ()
) -> Sighting:
    return Sighting(row.at_ns, row.at_ns, thing, dimension, member, value, also)


_READERS: Final = {START: _started, CONFIG: _configured, DRIVER: _driven}
