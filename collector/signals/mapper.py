"""Samples as they come from a target, made rows under our names."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tailburn.collector.signals.catalogue import (
    ANY_PROCESS,
    Catalogue,
    Combine,
    Form,
    Kind,
    Made,
    Reading,
    Signal,
    Use,
)
from tailburn.collector.signals.exposition import HIGHEST_VALUE, Dropped, Scanned, read_labels
from tailburn.collector.signals.targets import Target
from tailburn.engine.schema import SIGNALS

UP: Final = "up"  # 1 for a target that answered, else 0
LONGEST_VALUE: Final = 256  # characters of a label's value; the rest is cut

_Key = tuple[str, Form, str]  # signal, form, labels


@dataclass(frozen=True)
class _Part:
    """What one sample adds to one reading. `value` is None where the sample's own is taken."""

    use: Use
    labels: str
    value: float | None = None


@dataclass(frozen=True)
class _Series:
    """A series as seen before: who it is, and what it is for."""

    identity: int
    parts: tuple[_Part, ...]
    silent: tuple[int, ...]  # readings that ask for another value of a label it has
    blank_above: float = math.inf


@dataclass(frozen=True)
class Told:
    """How a target tells a signal: through which reading, with how many samples.

    None of them: the metric is declared and nothing has happened yet.
    """

    reading: Reading
    samples: int


@dataclass
class Mapped:
    """Rows by column, and what was found."""

    rows: dict[_Key, list[float]] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    samples: int = 0  # of the answer that are for something


class Mapper:
    """Maps the answers of one target; remembers its series from one to the next."""

    def __init__(self, catalogue: Catalogue, target: Target) -> None:
        self._catalogue = catalogue
        self._target = target
        self._seen: dict[tuple[bytes, bytes], _Series | None] = {}
        self._base = {"replica": target.instance, **target.labels}

    def map(self, scanned: Scanned) -> Mapped:
        """Of each signal the first reading that has samples; what is dropped is counted there."""
        found: dict[int, list[tuple[_Part, float]]] = {}
        seen: dict[tuple[bytes, bytes], _Series | None] = {}
        met: set[tuple[bytes, int]] = set()
        silent: set[int] = set()
        samples = 0
        columns = zip(scanned.names, scanned.labels, scanned.values, strict=True)
        for name, block, value in columns:
            key = name, block
            series = seen[key] = self._seen[key] if key in self._seen else self._series(name, block)
            if series is None:
                scanned.drop(Dropped.BROKEN, name + b"{" + block + b"}")
                continue
            who = name, series.identity
            if who in met:
                scanned.drop(Dropped.DUPLICATE, name + b"{" + block + b"}")
                continue
            met.add(who)
            if value > series.blank_above:
                scanned.drop(Dropped.BLANK)
                continue
            silent.update(series.silent)
            samples += bool(series.parts)
            for part in series.parts:
                found.setdefault(part.use.reading, []).append((part, value))
        self._seen = seen  # series that are gone are forgotten
        mapped = self._chosen(found, silent, scanned)
        mapped.samples = samples
        return mapped

    def _chosen(
        self, found: dict[int, list[tuple[_Part, float]]], silent: set[int], scanned: Scanned
    ) -> Mapped:
        mapped = Mapped()
        readings = self._catalogue.readings
        sampled = set(scanned.names)
        for family, type_ in scanned.declared.items():
            if not any(name in sampled for name in _sample_names(family)):
                silent.update(
                    index
                    for index in self._catalogue.families[family]
                    if self._may_be(index, type_)
                )
        for index in sorted({*found, *silent}):
            reading, source = readings[index], self._catalogue.source_of[index]
            # A name alone says who it is only where nobody else has it.
            is_its_own = index in found or not (source.with_ or source.without)
            if is_its_own and source.role != ANY_PROCESS:
                mapped.sources.add(reading.source)
            if reading.signal in mapped.told:
                continue
            samples = found.get(index, [])
            mapped.told[reading.signal] = Told(reading, len(samples))
            _add(mapped.rows, reading, self._catalogue.signals[reading.signal], samples)
        return mapped

    def _may_be(self, index: int, type_: bytes) -> bool:
        """Whether a metric of this type can be what a reading asks for, once it has samples."""
        reading = self._catalogue.readings[index]
        is_histogram = self._catalogue.signals[reading.signal].kind is Kind.HISTOGRAM
        return not (is_histogram and reading.metrics and type_ in (b"gauge", b"counter"))

    def _series(self, name: bytes, block: bytes) -> _Series | None:
        given = read_labels(block)
        if given is None:
            return None
        identity = hash(tuple(sorted(given.items())))
        parts: list[_Part] = []
        silent: list[int] = []
        blank = math.inf
        for use in self._catalogue.uses[name]:
            source = self._catalogue.source_of[use.reading]
            reading = self._catalogue.readings[use.reading]
            if not source.emits(given):
                continue
            if not reading.takes(given):
                if all(label in given for label, _ in reading.where):
                    silent.append(use.reading)
                continue
            made = _made(reading, given)
            if reading.made is not Made.VALUE and made is None:
                continue
            labels = self._labels(reading, use, given)
            if labels is not None:
                parts.append(_Part(use, labels, made))
                blank = min(blank, source.blank_above)
        return _Series(identity, tuple(parts), tuple(silent), blank)

    def _labels(self, reading: Reading, use: Use, given: Mapping[str, str]) -> str | None:
        labels = dict(self._base)
        for name, source in reading.labels.items():
            value = source.value(given)
            if value:
                labels[name] = value[:LONGEST_VALUE]
        labels["source"] = reading.source
        if use.part:
            labels["part"] = use.part
        if use.form is Form.HISTOGRAM_BUCKET:
            bound = _bound(given.get("le", ""), reading.factor)
            if bound is None:
                return None
            labels["le"] = bound
        return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def _sample_names(family: bytes) -> Sequence[bytes]:
    return tuple(family + end for end in (b"", b"_total", b"_bucket", b"_sum", b"_count"))


def _bound(text: str, factor: float) -> str | None:
    """The upper bound of a bucket in the signal's unit; None where it is no number."""
    try:
        bound = float(text) * factor
    except ValueError:
        return None
    return "+Inf" if math.isinf(bound) else repr(bound)


def _made(reading: Reading, given: Mapping[str, str]) -> float | None:
    """The number that labels say; None where they don't, or where the sample's value counts."""
    if reading.made is Made.PRODUCT:
        try:
            return math.prod(float(given[label]) for label in reading.made_of)
        except (KeyError, ValueError):
            return None
    if reading.made is Made.ITEMS:
        names = (name for label in reading.made_of for name in given.get(label, "").split(","))
        return float(sum(bool(name.strip()) for name in names))
    if reading.made is Made.ONE and all(given.get(label) for label in reading.made_of):
        return 1.0
    return None


def _add(
    rows: dict[_Key, list[float]],
    reading: Reading,
    signal: Signal,
    samples: Sequence[tuple[_Part, float]],
) -> None:
    if reading.made is Made.ITEMS:
        # Old label sets stay for ever: the value is the time at which each was true.
        samples = [max(samples, key=lambda sample: sample[1])] if samples else []
    for part, value in samples:
        factor = 1.0 if part.use.form in _COUNTS else reading.factor
        number = (value if part.value is None else part.value) * factor
        if not abs(number) <= HIGHEST_VALUE:
            continue
        key = signal.name, part.use.form, part.labels
        rows.setdefault(key, []).append(number)


_COUNTS: Final = (Form.HISTOGRAM_BUCKET, Form.HISTOGRAM_COUNT)


def signals_table(
    mapped: Mapped | None, catalogue: Catalogue, target: Target, received_ns: int
) -> pa.Table:
    """Rows of engine.schema.SIGNALS; without an answer only that the target is down."""
    up = json.dumps({"replica": target.instance, **target.labels}, sort_keys=True)
    columns: dict[str, list[Any]] = {
        "name": [UP],
        "kind": [str(Form.GAUGE)],
        "unit": ["1"],
        "labels": [up],
        "value": [0.0 if mapped is None else 1.0],
    }
    for (name, form, labels), values in (mapped.rows if mapped else {}).items():
        signal = catalogue.signals[name]
        columns["name"].append(name)
        columns["kind"].append(str(form))
        columns["unit"].append("1" if form in _COUNTS else signal.unit)
        columns["labels"].append(labels)
        columns["value"].append(_combined(values, signal.combine))
    n = len(columns["name"])
    resource = {"service.instance.id": target.instance}
    if target.job:
        resource["job"] = target.job
    service = target.service or target.job
    if service:
        resource["service.name"] = service
    columns["received_ns"] = columns["time_ns"] = [received_ns] * n
    columns["tenant"] = [target.tenant] * n
    columns["service"] = [service] * n
    columns["resource"] = [json.dumps(resource, sort_keys=True)] * n
    arrays = [
        pa.array(columns[f.name], pa.string()).dictionary_encode()
        if pa.types.is_dictionary(f.type)
        else pa.array(columns[f.name], f.type)
        for f in SIGNALS
    ]
    return pa.Table.from_arrays(arrays, schema=SIGNALS)


def _combined(values: Sequence[float], combine: Combine) -> float:
    if len(values) == 1:
        return values[0]
    if combine is Combine.MAX:
        return max(values)
    total = math.fsum(values)
    return total / len(values) if combine is Combine.MEAN else total
