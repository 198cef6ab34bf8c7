"""What the doors count: one answer per request, by door, signal and outcome."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Answer(NamedTuple):
    """`outcome` is `ok`, `partial`, `disconnected` or the `reason` of a `Problem`."""

    door: str  # http, grpc
    signal: str  # traces, metrics, none
    outcome: str


@dataclass
class Tally:
    """Written by one event loop, read by anybody."""

    answers: Counter[Answer] = field(default_factory=Counter)
    wire_bytes: Counter[str] = field(default_factory=Counter)  # by door, as they came
    body_bytes: Counter[str] = field(default_factory=Counter)  # by door, after decompression
