"""Versions of services, as the resources of their spans tell them."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.sightings.sightings import Sighting, Thing, cut, dimensions

COLUMNS: Final = ("received_ns", "tenant", "service", "hop", "resource")
"""What is read of SPANS."""

_VERSION: Final = "service.version"
_REPLICA: Final = ("service.instance.id", "k8s.pod.name", "host.name")
_KEYS: Final = ("minute_ns", "tenant", "service", "hop", "resource")


def seen_in_spans(spans: pa.Table) -> list[Sighting]:
    """A sighting for each minute, hop and resource that says its `service.version`."""
    return [
        found
        for row in _grouped(spans)
        if _VERSION in (row["resource"] or "") and (found := _sighting(row)) is not None
    ]


def _grouped(spans: pa.Table) -> list[dict[str, Any]]:
    """First and last span of each minute and resource: few rows, whatever the traffic."""
    columns = spans.select(COLUMNS).unify_dictionaries().combine_chunks()
    minutes = pc.multiply(pc.divide(columns["received_ns"], MINUTE_NS), MINUTE_NS)
    grouped = columns.append_column("minute_ns", minutes).group_by(list(_KEYS))
    found = grouped.aggregate([("received_ns", "min"), ("received_ns", "max")])
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _sighting(row: Mapping[str, Any]) -> Sighting | None:
    attributes = json.loads(row["resource"])
    service = row["service"] or row["hop"]
    version = attributes.get(_VERSION)
    if not service or not version:
        return None
    member = next((attributes[name] for name in _REPLICA if attributes.get(name)), "")
    return Sighting(
        at_ns=row["received_ns_min"],
        until_ns=row["received_ns_max"],
        thing=Thing(
            row["tenant"] or "", Kind.DEPLOY, cut(service), dimensions({"service": row["service"]})
        ),
        dimension="replica",
        member=cut(member),
        value=cut(version),
        also=dimensions({"hop": row["hop"]}),
    )
