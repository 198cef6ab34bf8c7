"""What telemetry shows at a time: that a member of a thing has a value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.engine.changes import Kind
from tailburn.engine.evaluation.windows import MINUTE_NS

LONGEST_VALUE: Final = 128
"""Characters of a version, a setting or a name; the rest is cut."""

Dimensions = tuple[tuple[str, str], ...]
"""Names and values, in order of the names."""


@dataclass(frozen=True, order=True)
class Thing:
    """What has a value: the version of a service, the driver of GPUs.

    `shared` are dimensions that all its members have.
    """

    tenant: str
    kind: Kind
    what: str
    shared: Dimensions = ()


@dataclass(frozen=True, order=True)
class Sighting:
    """A member of a thing had a value, seen from `at_ns` to `until_ns`, both in one minute.

    A member is one `replica`, `node` or `gpu`: `dimension` says which; "" is one that is not told
    from others.
    """

    at_ns: int
    until_ns: int
    thing: Thing
    dimension: str
    member: str
    value: str
    also: Dimensions = ()


def cut(text: object) -> str:
    """A value as it is kept."""
    return str(text)[:LONGEST_VALUE]


def dimensions(given: Mapping[str, str | None]) -> Dimensions:
    """Those that have a value."""
    return tuple((name, cut(value)) for name, value in sorted(given.items()) if value)


def by_minute(sightings: Iterable[Sighting]) -> list[tuple[int, Sequence[Sighting]]]:
    """Begin of each minute in ns, with what was seen in it, in an order that is always the same."""
    found: dict[int, list[Sighting]] = {}
    for sighting in sightings:
        found.setdefault(sighting.at_ns // MINUTE_NS * MINUTE_NS, []).append(sighting)
    return [(minute_ns, sorted(found[minute_ns])) for minute_ns in sorted(found)]
