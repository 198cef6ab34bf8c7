"""Events of Kubernetes that tell of a change: scaling, and pods that are ended or fall over."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tailburn.engine.changes import Change, Kind, key_of

TOLD_BY: Final = "kubernetes"
_MOST: Final = 256
_SIZES: Final = (
    re.compile(r"replica set \S+ to (?P<new>\d+)(?: from (?P<old>\d+))?"),
    re.compile(r"replica set \S+ from (?P<old>\d+) to (?P<new>\d+)"),
    re.compile(r"New size: (?P<new>\d+)"),
)
_KINDS: Final[Mapping[str, Kind]] = {
    "ScalingReplicaSet": Kind.SCALE,
    "SuccessfulRescale": Kind.SCALE,
    "Killing": Kind.RESTART,
    "BackOff": Kind.RESTART,
    "OOMKilling": Kind.RESTART,
    "Evicted": Kind.RESTART,
    "Preempted": Kind.RESTART,
    "NodeNotReady": Kind.RESTART,
    "Rebooted": Kind.RESTART,
}
"""Reasons, as kubelet, deployments and autoscalers give them; others tell of no change."""


class _Object(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Metadata(msgspec.Struct):
    uid: str = ""


class Event(msgspec.Struct):
    """As `v1.Event` has it; of a series `count` and the last time grow."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    involvedObject: _Object = msgspec.field(default_factory=_Object)  # noqa: N815
    reason: str = ""
    message: str = ""
    firstTimestamp: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815


def changes_of(events: Iterable[Event], tenant: str) -> Iterator[Change]:
    """What they tell; an event that is listed again is the same change."""
    for event in events:
        kind = _KINDS.get(event.reason)
        at_ns = _unix_ns(event.firstTimestamp or event.eventTime)
        if kind is None or at_ns is None or not event.metadata.uid:
            continue
        thing = event.involvedObject
        old, new = _sizes(event.message) if kind is Kind.SCALE else ("", event.reason)
        yield Change(
            at_ns=at_ns,
            kind=kind,
            what=f"{thing.kind} {thing.namespace}/{thing.name}"[:_MOST],
            old=old,
            new=new,
            where=_where(thing),
            who=TOLD_BY,
            tenant=tenant,
            told_as=key_of(TOLD_BY, event.metadata.uid),
        )


def _where(thing: _Object) -> dict[str, str]:
    if thing.kind == "Pod":
        return {"replica": thing.name[:_MOST]}
    return {"node": thing.name[:_MOST]} if thing.kind == "Node" else {}


def _sizes(message: str) -> tuple[str, str]:
    """Before and after, where the message says them."""
    for pattern in _SIZES:
        if (found := pattern.search(message)) is not None:
            sizes = found.groupdict()
            return sizes.get("old") or "", sizes["new"]
    return "", ""


def _unix_ns(text: str | None) -> int | None:
    try:
        return round(datetime.fromisoformat(text or "").timestamp() * 1e6) * 1_000
    except ValueError:
        return None
