"""OTLP traces in protobuf to columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailburn.collector.errors import BadBody
from tailburn.collector.otlp.dictionary import Dictionary
from tailburn.collector.otlp.kernel.buffers import GROUPS, Buffers
from tailburn.collector.otlp.kernel.entries import learn_wanted_key
from tailburn.collector.otlp.kernel.memory import address_of
from tailburn.collector.otlp.kernel.scan import scan
from tailburn.collector.otlp.kernel.state import FULL, OK
from tailburn.collector.otlp.kernel.wire import REWRITE
from tailburn.collector.otlp.kernel.workspace import Workspace
from tailburn.collector.otlp.limits import DEFAULT, Limits
from tailburn.collector.otlp.resources import Resources
from tailburn.collector.otlp.rewrite import rewrite
from tailburn.collector.otlp.wanted import Wanted
from tailburn.collector.spans import SpanBatch

REASONS: Final = ("trace_id", "span_id", "parent_span_id")
"""Why a span was rejected: the field that is not as OTLP wants it."""

_ACCEPTED: Final = (
    "16 bytes, not all zero",
    "8 bytes, not all zero",
    "8 bytes, or none for a root",
)
_LENGTHS: Final = (16, 8, 8)


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
        limits: Limits = DEFAULT,
    ) -> None:
        self.dictionary = dictionary if dictionary is not None else Dictionary()
        self.resources = resources if resources is not None else Resources()
        self._nesting = limits.nesting
        self._work = Workspace(
            limits,
            self.dictionary.table,
            self.resources.table,
            bytes(int(w.want) for w in wanted),
        )
        self._buffers = Buffers(self._work.record)
        self._rejected: Counter[tuple[int, int]] = Counter()
        self._tenant = ("", 0)
        self._enter(wanted)

    def _enter(self, wanted: Sequence[Wanted]) -> None:
        """Tell compiled code which keys are wanted."""
        for position, one in enumerate(wanted):
            code = self.dictionary.own_code(one.key)
            if code == 0:
                raise ValueError(f"no room in the dictionary for the wanted key {one.key!r}")
            key = self._work.keys[code]
            if key[one.where]:
                raise ValueError(f"{one.key!r} is wanted twice of a {one.where}")
            key[one.where] = position + 1
            learn_wanted_key(self._work, code, one.key)

    @property
    def dropped(self) -> Dropped:
        """What the limits cost so far."""
        work = self._work
        return Dropped(work["dropped_attributes"], work["dropped_events"], work["cut_values"])

    def add(self, body: bytearray, *, received_ns: int, tenant: str) -> Decoded:
        """Append the spans of an ExportTraceServiceRequest, which is blanked in place.

        Raises BadBody; the body's blanking may have begun by then.
        """
        if not body:
            return Decoded(0, 0, "", body)
        first = self._work["spans"]
        status = self._scan(body, received_ns, tenant)
        if status == REWRITE:
            body = rewrite(body, self._nesting)
            status = self._scan(body, received_ns, tenant)
        if status != OK:
            offset = self._work["at"] - address_of(np.frombuffer(body, np.uint8))
            raise BadBody(
                f"body is no ExportTraceServiceRequest in protobuf: byte {offset} of {len(body)}"
            )
        spans = self._work["spans"] - first
        rejected = self._work["rejected"]
        message = self._take_rejects(spans, rejected) if rejected else ""
        return Decoded(spans, rejected, message, body)

    def _scan(self, body: bytearray, received_ns: int, tenant: str) -> int:
        if tenant != self._tenant[0]:
            self._tenant = (tenant, self.dictionary.own_code(tenant))
        data = np.frombuffer(body, np.uint8)
        while True:
            with self.dictionary.lock:
                self.dictionary.shares.charge(tenant)
                self.resources.shares.charge(tenant)
                status = scan(self._work.address, data, received_ns, self._tenant[1])
            if status != FULL:
                return int(status)
            self._buffers.grow(tuple(GROUPS)[self._work["full"]])

    def _take_rejects(self, spans: int, rejected: int) -> str:
        for code, reason, count in self._work.rejects[: self._work["reject_rows"]].tolist():
            self._rejected[code, reason] += count
        index, reason = self._work["first_index"], self._work["first_reason"]
        length = self._work["first_length"]
        found = f"{length} bytes" + (" of zero" if length == _LENGTHS[reason] else "")
        return (
            f"{rejected} of {spans + rejected} spans rejected; first: span {index}: "
            f"{REASONS[reason]} has {found}, accepted: {_ACCEPTED[reason]}"
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
