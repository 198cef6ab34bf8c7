"""OTLP traces in protobuf to columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.buffers import GROUPS, Buffers
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.limits import Limits
from tailburn.collector.otlp.memory import address_of, compiled
from tailburn.collector.otlp.names import LONG, class_of_name, names
from tailburn.collector.otlp.numbers import FORM_ADDRESS
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.otlp.rewrite import rewrite
from tailburn.collector.otlp.scan import scan
from tailburn.collector.otlp.state import FULL, KEY_BYTES, OK, RECORD, REJECTS
from tailburn.collector.otlp.strays import resource
from tailburn.collector.otlp.table import bytes_in
from tailburn.collector.otlp.values import FRAMES_BYTES
from tailburn.collector.otlp.wanted import Wanted
from tailburn.collector.otlp.wire import BAD, REWRITE
from tailburn.collector.spans import SpanBatch

REASONS: Final = ("trace_id", "span_id", "parent_span_id")
"""Why a span was rejected: the field that is not as OTLP wants it."""

_ACCEPTED: Final = (
    "16 bytes, not all zero",
    "8 bytes, not all zero",
    "8 bytes, or none for a root",
)
_COUNTS: Final = (*GROUPS, "dropped_attributes", "dropped_events", "cut_values")


@dataclass(frozen=True)
class Decoded:
    """A body that was taken. `rejected` of its spans were not: `message` is for the sender."""

    spans: int
    rejected: int
    message: str
    body: bytearray  # blanked, to be logged


@dataclass(frozen=True)
class Dropped:
    """What was over the limits since the start, and left out of the columns."""

    attributes: int
    events: int
    values_cut: int


@compiled
def _class_of_name(record: NDArray[np.void], p: int, length: int) -> int:
    return class_of_name(record[0], p, p + length)


@compiled
def _enter_resource(
    state: NDArray[np.void],
    resources: NDArray[np.void],
    patterns: NDArray[np.void],
    words: NDArray[np.void],
    p: int,
    length: int,
) -> int:
    c = state[0]
    c.readable = p + length
    status = resource(c, resources[0], patterns[0], words[0], p, p + length)
    return status if status < 0 else c.resource_code


class _Memory:
    """The record of a decoder and the arrays it points at."""

    def __init__(self, limits: Limits, keys: int, wants: bytes) -> None:
        self.record = np.zeros(1, RECORD)
        self._arrays: list[NDArray[Any]] = []
        self.keys = self._array("keys", keys * KEY_BYTES)
        self._array("wants", len(wants) + 1)[:-1] = np.frombuffer(wants, np.uint8)
        self._rejects = self._array("rejects", REJECTS * 24).view(np.int64).reshape(-1, 3)
        self._array("scratch", limits.value_bytes + 64)
        self._array("pad", 64)
        self._array("base64", limits.value_bytes + 64)
        self._array("frames", FRAMES_BYTES)
        self.record["form"] = FORM_ADDRESS
        self.record["max_attributes"] = limits.attributes
        self.record["max_events"] = limits.events
        for name in ("value_bytes", "unlisted_bytes", "name_bytes", "event_name_bytes", "nesting"):
            self.record[name] = getattr(limits, name)

    def rejects(self, rows: int) -> list[tuple[int, int, int]]:
        """(resource code, reason, count) of the last body's rejected spans."""
        return [(code, reason, count) for code, reason, count in self._rejects[:rows].tolist()]

    def _array(self, name: str, size: int) -> NDArray[np.uint8]:
        array = np.zeros(size, np.uint8)
        self._arrays.append(array)
        self.record[name] = address_of(array)
        return array


def enter_resource(resources: Resources, message: bytes) -> int:
    """The code of a Resource message, new or known; 0 when there is no room."""
    shipped = names()
    memory = _Memory(Limits(), 1, b"")
    data = bytes_in(bytearray(message))
    return int(
        _enter_resource(
            memory.record,
            resources.table.record,
            shipped.record,
            shipped.words,
            address_of(data),
            len(message),
        )
    )


class Decoder:
    """Decodes bodies into one open batch of columns. Callers serialise their calls.

    Whatever a body holds, at most the spans at fault are lost, and a body that can't be
    decoded leaves the batch as it was.
    """

    def __init__(
        self,
        wanted: Sequence[Wanted],
        *,
        dictionary: Dictionary | None = None,
        resources: Resources | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.dictionary = dictionary if dictionary is not None else Dictionary()
        self.resources = resources if resources is not None else Resources()
        self._nesting = limits.nesting
        self._names = names()
        capacity = int(self.dictionary.table.record["capacity"][0])
        self._memory = _Memory(limits, capacity + 1, bytes(int(w.want) for w in wanted))
        self._state = self._memory.record
        self._buffers = Buffers(self._state)
        self._rejected: Counter[tuple[int, int]] = Counter()
        self._enter(wanted)

    def _enter(self, wanted: Sequence[Wanted]) -> None:
        """Tell compiled code which keys are wanted."""
        keys = self._memory.keys.reshape(-1, KEY_BYTES)
        for position, one in enumerate(wanted):
            code = self.dictionary.code(one.key)
            if code == 0:
                raise ValueError(f"no room in the dictionary for the wanted key {one.key!r}")
            data = one.key.encode()
            class_ = _class_of_name(self._names.record, address_of(bytes_in(data)), len(data))
            keys[code, :4].view(np.int32)[0] = class_ | LONG
            place = keys[code, 6:8] if one.where == "event" else keys[code, 4:6]
            if place.view(np.int16)[0]:
                raise ValueError(f"{one.key!r} is wanted twice of a {one.where}")
            place.view(np.int16)[0] = position + 1

    @property
    def dropped(self) -> Dropped:
        """What the limits cost so far."""
        counts = (int(self._state[name][0]) for name in _COUNTS[-3:])
        return Dropped(*counts)

    def add(self, body: bytearray, *, received_ns: int, tenant: str) -> Decoded:
        """Append the spans of an ExportTraceServiceRequest, which is blanked in place.

        Raises BadBody; the body's blanking may have begun by then.
        """
        first = int(self._state["spans"][0])
        tenant_code = self.dictionary.code(tenant)
        status = self._scan(body)
        if status == REWRITE:
            body = rewrite(body, self._nesting)
            status = self._scan(body)
        if status != OK:
            raise BadBody(self._complaint(body, status))
        self._buffers.view("spans_received", first)[:] = received_ns
        self._buffers.view("spans_tenant", first)[:] = tenant_code
        spans = int(self._state["spans"][0]) - first
        rejected = int(self._state["rejected"][0])
        message = self._take_rejects(spans, rejected) if rejected else ""
        return Decoded(spans, rejected, message, body)

    def _scan(self, body: bytearray) -> int:
        data = bytes_in(body)
        before = self._state.copy()
        while True:
            self._state["rejected"] = 0
            self._state["reject_rows"] = 0
            with self.dictionary.lock:
                status = int(
                    scan(
                        self._state,
                        self.dictionary.table.record,
                        self.resources.table.record,
                        self._names.record,
                        self._names.words,
                        address_of(data),
                        len(body),
                    )
                )
            if status != OK:
                for name in _COUNTS:
                    self._state[name] = before[name]
            if status != FULL:
                return status
            self._buffers.grow(tuple(GROUPS)[int(self._state["full"][0])])

    def _complaint(self, body: bytearray, status: int) -> str:
        if status == BAD:
            offset = int(self._state["at"][0]) - address_of(bytes_in(body))
            return f"no protobuf of ExportTraceServiceRequest at byte {offset} of {len(body)}"
        return "no protobuf of ExportTraceServiceRequest"

    def _take_rejects(self, spans: int, rejected: int) -> str:
        rows = self._memory.rejects(int(self._state["reject_rows"][0]))
        for code, reason, count in rows:
            self._rejected[code, reason] += count
        index, reason, length = (
            int(self._state[name][0]) for name in ("first_index", "first_reason", "first_length")
        )
        zeros = f"{length} bytes" if length not in (8, 16) else f"{length} bytes of zero"
        return (
            f"{rejected} of {spans + rejected} spans rejected; first: span {index}: "
            f"{REASONS[reason]} has {zeros}, accepted: {_ACCEPTED[reason]}"
        )

    def take(self) -> SpanBatch:
        """Detach all that was appended since the last call; the arrays are the caller's."""
        own = self._buffers.copied
        trace = np.column_stack(
            (self._buffers.view("spans_trace_low"), self._buffers.view("spans_trace_high"))
        )
        string_ends = self._buffers.offsets("strs_end")
        batch = SpanBatch(
            trace=trace,
            span=own("spans_span"),
            parent=own("spans_parent"),
            start_ns=own("spans_start"),
            end_ns=own("spans_end"),
            kind=own("spans_kind"),
            status=own("spans_status"),
            flags=own("spans_flags"),
            name=own("spans_name"),
            scope=own("spans_scope"),
            resource=own("spans_resource"),
            digest=own("spans_digest"),
            weight=own("spans_weight"),
            wanted_offset=self._buffers.offsets("spans_wanted_end"),
            wanted_key=own("wanted_key"),
            wanted_num=own("wanted_num"),
            wanted_code=own("wanted_code"),
            wanted_id=own("wanted_id"),
            num_offset=self._buffers.offsets("spans_nums_end"),
            num_key=own("nums_key"),
            num_value=own("nums_value"),
            str_offset=self._buffers.offsets("spans_strs_end"),
            str_key=own("strs_key"),
            str_bytes_offset=string_ends,
            str_bytes=own("bytes_byte"),
            event_offset=self._buffers.offsets("spans_events_end"),
            event_name=own("events_name"),
            event_ns=own("events_ns"),
            received_ns=own("spans_received"),
            tenant=own("spans_tenant"),
        )
        self._buffers.clear()
        return batch

    def take_rejected(self) -> list[tuple[int, str, int]]:
        """(resource code, reason, count) of the spans rejected since the last call."""
        taken = [(code, REASONS[reason], n) for (code, reason), n in self._rejected.items()]
        self._rejected.clear()
        return taken
