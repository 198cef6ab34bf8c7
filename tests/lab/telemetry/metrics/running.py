"""A small world, run once a module: what its fleet tells, and how pages of it are read."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.parser import text_string_to_metric_families

from tailburn.lab.fleet import Fleet, split, standard
from tailburn.lab.records import Attempts
from tailburn.lab.run import Motion, Plan, Traffic
from tailburn.lab.telemetry.metrics import MetricsText, Scrapes, Target
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.telemetry.spans.wiring import Wiring
from tailburn.lab.workload import named
from tailburn.lab.world.samples import Samples

S = 10**9
EPOCH = 1_796_000_000 * S
PER_S = 8.0
Turn = tuple[str, float, str, int, int]
"""Knob, value, scope, start and end in s."""


@dataclass(frozen=True)
class Run:
    """What a world told, minute by minute."""

    fleet: Fleet
    attempts: tuple[Attempts, ...]
    samples: tuple[Samples, ...]

    @property
    def all(self) -> Attempts:
        return Attempts.join(list(self.attempts))

    def scrapes(self, wiring: Wiring | None = None, hold_s: int = 0, **more: Any) -> list[Scrapes]:
        """Of each minute, and what is left at the end."""
        wiring = wiring or wiring_of(self.fleet)
        told = MetricsText(self.fleet, wiring, epoch_unix_ns=EPOCH, hold_ns=hold_s * S, **more)
        found = [told.feed(a, s) for a, s in zip(self.attempts, self.samples, strict=True)]
        return [*found, told.finish()]


@cache
def run(
    turns: tuple[Turn, ...] = (), minutes: int = 3, fleet: Fleet | None = None, per_s: float = PER_S
) -> Run:
    """Some minutes of a fleet under the traffic of a chat service."""
    fleet = fleet or standard(per_s, clients=400)
    plan = Plan(fleet, (Traffic(named("azure-conv"), per_s),), seed=7)
    motion = Motion(plan)
    for knob, value, scope, start_s, end_s in turns:
        motion.world.set(knob, value, scope, start_s * S, end_s * S)
    told = list(motion.minutes(minutes))
    return Run(fleet, tuple(one.attempts for one in told), tuple(one.samples for one in told))


def with_stacks(fleet: Fleet, **stacks: str) -> Wiring:
    """The fleet's wiring with these products: `engine="sglang"`."""
    wiring = wiring_of(fleet)
    places: dict[str, Any] = {
        f"{hop}s": tuple(replace(place, stack=stack) for place in getattr(wiring, f"{hop}s"))
        for hop, stack in stacks.items()
    }
    return replace(wiring, **places)


def halves() -> Fleet:
    """A fleet of prefill and decode pools."""
    return split(PER_S, clients=400)


def target(scrapes: Scrapes, name: str) -> Target:
    """A target by its name."""
    return next(t for t in scrapes.targets if t.name == name)


def last_of(scrapes: list[Scrapes]) -> Scrapes:
    """The last that hold any."""
    return [one for one in scrapes if len(one)][-1]


def last_text(scrapes: list[Scrapes], name: str) -> bytes:
    """A target's page at the very last scrape."""
    found = last_of(scrapes)
    text = found.text(target(found, name), len(found) - 1)
    assert text is not None
    return text


def parsed(text: bytes) -> dict[str, Any]:
    """A page as prometheus_client reads it, by family."""
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def values(text: bytes, name: str, **labels: str) -> list[float]:
    """Values of a metric's series that have these labels."""
    return [
        sample.value
        for family in parsed(text).values()
        for sample in family.samples
        if sample.name == name and all(sample.labels.get(k) == v for k, v in labels.items())
    ]


def value(text: bytes, name: str, **labels: str) -> float:
    """The value of the one series."""
    found = values(text, name, **labels)
    assert len(found) == 1, (name, labels, found)
    return found[0]


def column(table: pa.Table, metric: str, target: str, *labels: str) -> list[float]:
    """Values of a target's metric, of series with these labels, in order of time."""
    here = pc.and_(pc.equal(table["metric"], metric), pc.equal(table["target"], target))
    for label in labels:
        told = table["labels"].cast(pa.string())
        here = pc.and_(here, pc.match_substring(told, label))
    return list(table.filter(here)["value"].to_pylist())


def joined(scrapes: list[Scrapes], metrics: tuple[str, ...] | None = None) -> pa.Table:
    """The series of all scrapes."""
    return pa.concat_tables([one.series(metrics) for one in scrapes if len(one)])
