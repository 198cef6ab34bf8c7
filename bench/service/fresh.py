"""Prepared bodies that are new each time they are sent: other ids, and times up to now.

Nothing is encoded while a measurement runs: a round of bodies is prepared once, and sending one
again overwrites its trace ids, times and request ids in place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.bodies import messages

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]

_REQUEST_ID: Final = b"chatcmpl-"
_ID_DIGITS: Final = 8  # of a request id, that tell the round
_START_TAG: Final = b"\x39"  # a fixed64, field 7 of a span
_END_TAG: Final = b"\x41"  # and field 8
_TRACE_TAG: Final = b"\x0a\x10"


@dataclass(frozen=True)
class _Places:
    """Offsets of eight bytes each: low words of trace ids, times, digits of request ids."""

    traces: NDArray[np.intp]
    times: NDArray[np.intp]
    requests: NDArray[np.intp]


class FreshBody:
    """One body. Not safe to renew while it is being sent."""

    def __init__(self, message: ExportTraceServiceRequest) -> None:
        data = message.SerializeToString()
        spans = [s for r in message.resource_spans for g in r.scope_spans for s in g.spans]
        self.spans = len(spans)
        self.data = bytearray(data)
        self._bytes: U8 = np.frombuffer(self.data, np.uint8)
        places = _places(data, spans)
        self._traces, self._times = _windows(places.traces), _windows(places.times)
        self._requests = _windows(places.requests)
        self._first_traces = self._words(self._traces)
        self._first_times = self._words(self._times)
        self.last_ns = max(s.end_time_unix_nano for s in spans)

    def renew(self, round_number: int, now_ns: int) -> bytearray:
        """The body of that round, its last span ended at `now_ns`. Valid until the next call."""
        mask = np.uint64((round_number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
        shift = np.uint64((now_ns - self.last_ns) & 0xFFFFFFFFFFFFFFFF)
        self._bytes[self._traces] = (self._first_traces ^ mask).view(np.uint8).reshape(-1, 8)
        self._bytes[self._times] = (self._first_times + shift).view(np.uint8).reshape(-1, 8)
        digits = f"{round_number:0{_ID_DIGITS}x}".encode()
        self._bytes[self._requests] = np.frombuffer(digits, np.uint8)
        return self.data

    def _words(self, windows: NDArray[np.intp]) -> U64:
        return self._bytes[windows].copy().view(np.uint64).ravel()


def fresh_bodies(
    count: int, spans: int, spans_a_request: int | None = None, whole: bool = True
) -> list[FreshBody]:
    """A round of `count` bodies of `spans` spans each; eight to ten spans a request unless told.

    Not `whole`: without the requests' first spans, so that their roots never come.
    """
    found = messages(count, spans, spans_a_request=spans_a_request)
    return [FreshBody(message if whole else _without_roots(message)) for message in found]


def _without_roots(message: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    for group in message.resource_spans:
        for scoped in group.scope_spans:
            children = [span for span in scoped.spans if span.parent_span_id]
            del scoped.spans[:]
            scoped.spans.extend(children)
    return message


def _places(data: bytes, spans: Sequence[Span]) -> _Places:
    traces, times, at = [], [], 0
    for span in spans:
        at = data.index(_TRACE_TAG + span.trace_id, at) + len(_TRACE_TAG)
        traces.append(at)
        for tag, time_ns in (
            (_START_TAG, span.start_time_unix_nano),
            (_END_TAG, span.end_time_unix_nano),
        ):
            times.append(data.index(tag + time_ns.to_bytes(8, "little"), at) + len(tag))
        for event in span.events:
            times.append(data.index(event.time_unix_nano.to_bytes(8, "little"), times[-1]))
    return _Places(np.array(traces), np.array(times), np.array(_request_ids(data), np.intp))


def _request_ids(data: bytes) -> list[int]:
    found, at = [], data.find(_REQUEST_ID)
    while at >= 0:
        found.append(at + len(_REQUEST_ID))
        at = data.find(_REQUEST_ID, at + 1)
    return found


def _windows(starts: NDArray[np.intp]) -> NDArray[np.intp]:
    return starts[:, None] + np.arange(8)
