"""Signals under one name each, and what emits them: the tables that everything else goes by."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from tailburn.collector.hops.conditions import Patterns

ANY_PROCESS: Final = "process"
"""The role of what every program may tell: it says nothing of who it is."""

ROLES: Final = (
    "engine",
    "gateway",
    "gpu",
    "collective",
    "collective_health",
    "network",
    "host",
    "container",
    "tier",
    ANY_PROCESS,
)
STEPS: Final = ("hop", "queue", "throughput", "KV cache", "interconnect")


class Kind(StrEnum):
    """What a signal's values are."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Combine(StrEnum):
    """How series become one that differ only in labels left out."""

    SUM = "sum"
    MAX = "max"
    MEAN = "mean"


@dataclass(frozen=True)
class Signal:
    """One name of ours. `derived` says of which two others it can be made: `a - b`."""

    name: str
    kind: Kind
    unit: str
    role: str  # of the targets that should tell it
    step: int  # of the walk, an index in STEPS
    needed: bool  # the walk can't judge this step without it
    combine: Combine
    about: str
    blinds: str
    derived: tuple[str, str, str] | None  # name, one of - / *, name
    file: Path
    line: int


@dataclass(frozen=True)
class LabelFrom:
    """Where a label comes from: the first of these that is there, without the prefix `strip`."""

    labels: tuple[str, ...]
    strip: str = ""

    def value(self, given: Mapping[str, str]) -> str:
        """Empty where none of them is there."""
        found = next((given[name] for name in self.labels if given.get(name)), "")
        return found.removeprefix(self.strip)


class Made(StrEnum):
    """What a reading takes of a sample."""

    VALUE = "value"
    PRODUCT = "product"  # the numbers in some labels, multiplied
    ITEMS = "items"  # how many names stand in a label, in the series of the highest value
    ONE = "one"  # 1 where some labels are told: what counts stands in them


@dataclass(frozen=True)
class Reading:
    """One way to a signal: metrics of one source that say it.

    A histogram is `metrics` with their buckets, or `sum` and `count`, two plain counters. Values
    times `factor` are in the signal's unit.
    """

    signal: str
    source: str
    metrics: tuple[str, ...]
    sum: str
    count: str
    where: tuple[tuple[str, Patterns], ...]
    factor: float
    labels: Mapping[str, LabelFrom]
    made: Made
    made_of: tuple[str, ...]
    since: str
    until: str
    note: str
    file: Path
    line: int

    @property
    def is_each(self) -> bool:
        """Whether several metrics add up, each a part of its own."""
        return len(self.metrics) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics as the source spells them."""
        return self.metrics or (self.sum, self.count)

    @property
    def through(self) -> str:
        """The metrics and labels it goes by, in short."""
        name = self.metrics[0] if self.metrics else f"{self.sum} / {self.count}"
        if self.is_each:
            name += f" + {len(self.metrics) - 1} more"
        if self.where:
            asked = (f"{label}={pattern.in_short}" for label, pattern in self.where)
            name += "{" + ", ".join(asked) + "}"
        return name

    def takes(self, given: Mapping[str, str]) -> bool:
        """Whether a series with these labels counts."""
        return all(pattern(given.get(label, "")) for label, pattern in self.where)


@dataclass(frozen=True)
class Source:
    """A program that emits metrics."""

    name: str
    title: str
    role: str
    file: Path
    versions: tuple[str, ...] = ()
    with_: tuple[str, ...] = ()  # every one of its series has these labels
    without: tuple[str, ...] = ()  # and none of these
    blank_above: float = math.inf  # values over it stand for "not measured"
    # Prefixes that are also written otherwise.
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Of every reading, unless it says otherwise.
    labels: Mapping[str, LabelFrom] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()

    def emits(self, given: Mapping[str, str]) -> bool:
        """Whether a series of a name of ours, with these labels, is this source's."""
        return all(w in given for w in self.with_) and not any(w in given for w in self.without)

    def spelled(self, metric: str) -> Iterator[str]:
        """A metric's name in every spelling."""
        yield metric
        for prefix, others in self.spellings.items():
            if metric.startswith(prefix):
                yield from (other + metric.removeprefix(prefix) for other in others)


class Form(StrEnum):
    """Which row a sample becomes: the `kind` of the table of signals."""

    GAUGE = "gauge"
    SUM = "sum"
    HISTOGRAM_SUM = "histogram_sum"
    HISTOGRAM_COUNT = "histogram_count"
    HISTOGRAM_BUCKET = "histogram_bucket"


@dataclass(frozen=True)
class Use:
    """What a sample of some name is for."""

    reading: int  # index in `Catalogue.readings`
    form: Form
    part: str  # label `part` where several metrics add up


_SUFFIXES: Final = {
    "_bucket": Form.HISTOGRAM_BUCKET,
    "_sum": Form.HISTOGRAM_SUM,
    "_count": Form.HISTOGRAM_COUNT,
}


@dataclass(frozen=True)
class Catalogue:
    """All signals and sources. `uses` says by the name of a sample what it is for."""

    signals: Mapping[str, Signal]
    sources: Sequence[Source]
    readings: tuple[Reading, ...] = field(init=False)
    source_of: tuple[Source, ...] = field(init=False)  # by reading
    uses: Mapping[bytes, tuple[Use, ...]] = field(init=False)
    families: Mapping[bytes, tuple[int, ...]] = field(init=False)  # name in a TYPE line: readings

    def __post_init__(self) -> None:
        pairs = [(source, reading) for source in self.sources for reading in source.readings]
        uses: dict[bytes, list[Use]] = {}
        families: dict[bytes, list[int]] = {}
        for index, (source, reading) in enumerate(pairs):
            for name, use in _uses(index, reading, self.signals[reading.signal].kind):
                for spelled in source.spelled(name):
                    uses.setdefault(spelled.encode(), []).append(use)
            for metric in reading.names:
                for spelled in source.spelled(metric):
                    for family in {spelled, spelled.removesuffix("_total")}:
                        families.setdefault(family.encode(), []).append(index)
        object.__setattr__(self, "readings", tuple(reading for _, reading in pairs))
        object.__setattr__(self, "source_of", tuple(source for source, _ in pairs))
        object.__setattr__(self, "uses", {name: tuple(found) for name, found in uses.items()})
        object.__setattr__(self, "families", {n: tuple(found) for n, found in families.items()})

    def source(self, name: str) -> Source:
        return next(source for source in self.sources if source.name == name)


def _uses(index: int, reading: Reading, kind: Kind) -> Iterator[tuple[str, Use]]:
    if kind is Kind.HISTOGRAM and not reading.metrics:
        yield reading.sum, Use(index, Form.HISTOGRAM_SUM, "")
        yield reading.count, Use(index, Form.HISTOGRAM_COUNT, "")
        return
    for metric in reading.metrics:
        part = part_of(metric, reading.metrics) if reading.is_each else ""
        if kind is Kind.HISTOGRAM:
            for suffix, form in _SUFFIXES.items():
                yield metric + suffix, Use(index, form, part)
        elif kind is Kind.GAUGE:
            yield metric, Use(index, Form.GAUGE, part)
        else:
            # Clients append `_total`, or leave it out, as the format they write wants it.
            other = metric.removesuffix("_total")
            for name in {metric, other if other != metric else f"{metric}_total"}:
                yield name, Use(index, Form.SUM, part)


def part_of(metric: str, metrics: Sequence[str]) -> str:
    """What tells a metric from the others that it adds up with: its name without theirs.

    `num_grammar` of `sglang:num_queue_reqs` and `sglang:num_grammar_queue_reqs`.
    """
    words = [name.replace(":", "_").removesuffix("_total").split("_") for name in metrics]
    mine = metric.replace(":", "_").removesuffix("_total").split("_")
    start = 0
    while start < len(mine) - 1 and all(w[start : start + 1] == [mine[start]] for w in words):
        start += 1
    return "_".join(mine[start:]).lower()
