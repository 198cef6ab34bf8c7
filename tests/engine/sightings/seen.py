"""Sightings and rows to read changes off, and a fleet that is watched over many minutes."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.schema import SIGNALS, SPANS
from tailburn.engine.sightings.rollouts import Rollout, merged
from tailburn.engine.sightings.sightings import Sighting, Thing
from tailburn.engine.sightings.watched import Watched, after_minute
from tests.app.rows import make_rows

BEGIN_NS = 1_796_145_000_000_000_000 // MINUTE_NS * MINUTE_NS
VLLM = Thing("acme", Kind.DEPLOY, "vllm", (("service", "vllm"),))


def at(minute: float) -> int:
    return BEGIN_NS + round(minute * MINUTE_NS)


def seen(
    minute: float, member: str, value: str, thing: Thing = VLLM, dimension: str = "replica"
) -> Sighting:
    return Sighting(at(minute), at(minute), thing, dimension, member, value)


class Watch:
    """Minutes pass; `changes` are all that was told, as they are now."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.changes: dict[str, Rollout] = {}

    def minute(self, number: int, sightings: Iterable[Sighting]) -> None:
        self.watched, moves = after_minute(self.watched, sightings, at(number))
        for change in merged(self.changes.values(), moves):
            self.changes[change.key] = change

    def told(self) -> list[tuple[str, str | None, str | None, tuple[str, ...]]]:
        """Kind, old, new and replicas of each change, oldest first."""
        ordered = sorted(self.changes.values(), key=lambda c: (c.at_ns, c.key))
        return [(str(c.kind), c.old, c.new, c.where.get("replica", ())) for c in ordered]


def watch(minutes: Sequence[Iterable[Sighting]]) -> Watch:
    told = Watch()
    for number, sightings in enumerate(minutes):
        told.minute(number, sightings)
    return told


def spans(*rows: dict[str, Any]) -> pa.Table:
    """Rows of SPANS: `minute`, `hop` and the attributes of the resource."""
    return make_rows(
        SPANS,
        received_ns=[at(row["minute"]) for row in rows],
        tenant=["acme"] * len(rows),
        service=[row["resource"].get("service.name") for row in rows],
        hop=[row.get("hop") for row in rows],
        resource=[json.dumps(row["resource"]) for row in rows],
    )


def signals(*rows: tuple[float, str, float, dict[str, str]]) -> pa.Table:
    """Rows of SIGNALS of a service `vllm`: minute, name, value, labels."""
    return make_rows(
        SIGNALS,
        received_ns=[at(minute) for minute, *_ in rows],
        tenant=["acme"] * len(rows),
        service=["vllm"] * len(rows),
        resource=[json.dumps({"service.instance.id": "10.0.0.1:8000"})] * len(rows),
        name=[name for _, name, *_ in rows],
        value=[value for *_, value, _ in rows],
        labels=[json.dumps(labels) for *_, labels in rows],
    )
