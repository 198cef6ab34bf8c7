"""Spans written by hand as batches, with what a decoder owes the classifier and no more."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tailburn.collector.otlp.ids import id_hash
from tailburn.collector.otlp.wanted import Want, Wanted
from tailburn.collector.spans import SpanBatch

Plain = str | int | float | bool


class Texts:
    """A dictionary without bounds."""

    def __init__(self) -> None:
        self.texts = [""]
        self._codes = {"": 0}

    def text(self, code: int) -> str:
        return self.texts[code]

    def code(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]

    def own_code(self, text: str) -> int:
        return self.code(text)


class Resources:
    """A table of resources without bounds."""

    def __init__(self) -> None:
        self._known: list[Mapping[str, Plain]] = []

    def attributes(self, code: int) -> Mapping[str, Plain]:
        return self._known[code]

    def code(self, attributes: Mapping[str, Plain]) -> int:
        if attributes not in self._known:
            self._known.append(attributes)
        return self._known.index(attributes)


@dataclass
class Span:
    """A span; times in ns."""

    name: str = "span"
    scope: str = ""
    kind: int = 1
    status: int = 0
    attributes: Mapping[str, Plain] = field(default_factory=dict)
    resource: Mapping[str, Plain] = field(default_factory=dict)
    events: Sequence[tuple[str, int]] = ()
    event_attributes: Mapping[str, Plain] = field(default_factory=dict)
    start_ns: int = 1_000_000_000
    end_ns: int = 2_000_000_000
    tenant: str = ""


def number_of(value: Plain) -> float:
    """What `Want.NUMBER` makes of a value."""
    if isinstance(value, str):
        words = {"true": 1.0, "false": 0.0}
        try:
            return words[value.lower()] if value.lower() in words else float(value)
        except ValueError:
            return math.nan
    return float(value)


def text_of(value: Plain) -> str | None:
    """What `Want.TEXT` makes of a value."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if isinstance(value, float) else str(value)


def make_batch(
    spans: Iterable[Span], wanted: Sequence[Wanted], texts: Texts, resources: Resources
) -> SpanBatch:
    """The batch a decoder with this list of wanted keys would make."""
    spans = list(spans)
    n = len(spans)
    index = {(w.key, str(w.where)): i for i, w in enumerate(wanted)}
    entries: list[tuple[int, float, int, int]] = []
    wanted_offset, event_offset = [0], [0]
    events: list[tuple[int, int]] = []
    for span in spans:
        given = [(k, v, "span") for k, v in span.attributes.items()]
        given += [(k, v, "event") for k, v in span.event_attributes.items()]
        for key, value, where in given:
            if (key, where) in index:
                want = wanted[index[key, where]].want
                text = text_of(value) if Want.TEXT in want else None
                entries.append(
                    (
                        index[key, where],
                        number_of(value) if Want.NUMBER in want else math.nan,
                        -1 if text is None else texts.code(text),
                        id_hash(str(value)) if Want.ID in want else 0,
                    )
                )
        wanted_offset.append(len(entries))
        events += [(texts.code(name), at) for name, at in span.events]
        event_offset.append(len(events))
    no_i32, no_i64 = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return SpanBatch(
        trace=np.zeros((n, 2), np.uint64),
        span=np.arange(1, n + 1, dtype=np.uint64),
        parent=np.zeros(n, np.uint64),
        start_ns=np.array([s.start_ns for s in spans], np.int64),
        end_ns=np.array([s.end_ns for s in spans], np.int64),
        kind=np.array([s.kind for s in spans], np.int8),
        status=np.array([s.status for s in spans], np.int8),
        flags=np.zeros(n, np.uint32),
        name=np.array([texts.code(s.name) for s in spans], np.int32),
        scope=np.array([texts.code(s.scope) for s in spans], np.int32),
        resource=np.array([resources.code(s.resource) for s in spans], np.int32),
        digest=np.zeros(n, np.uint64),
        weight=np.ones(n),
        wanted_offset=np.array(wanted_offset, np.int32),
        wanted_key=np.array([e[0] for e in entries], np.int32),
        wanted_num=np.array([e[1] for e in entries], np.float64),
        wanted_code=np.array([e[2] for e in entries], np.int32),
        wanted_id=np.array([e[3] for e in entries], np.uint64),
        num_offset=np.zeros(n + 1, np.int32),
        num_key=no_i32,
        num_value=np.zeros(0),
        str_offset=np.zeros(n + 1, np.int32),
        str_key=no_i32,
        str_bytes_offset=np.zeros(1, np.int64),
        str_bytes=np.zeros(0, np.uint8),
        event_offset=np.array(event_offset, np.int32),
        event_name=np.array([e[0] for e in events], np.int32),
        event_ns=np.array([e[1] for e in events], np.int64),
        received_ns=no_i64,
        tenant=np.array([texts.code(s.tenant) for s in spans], np.int32),
    )
