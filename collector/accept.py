"""The seam between the doors (HTTP, gRPC, replay) and what lies behind them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Signal(StrEnum):
    """What a body carries."""

    TRACES = "traces"
    METRICS = "metrics"


class Encoding(StrEnum):
    """How a body is written, after decompression."""

    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True)
class Accepted:
    """A body that is durable. `rejected` of its spans or points were not taken: see `message`."""

    rejected: int = 0
    message: str = ""


class Accept(Protocol):
    """Takes a decompressed body; returns once it is durable.

    Raises `collector.errors.IngestError`. `received_ns` is the receive time; the body is the
    callee's from here on and is blanked in place.
    """

    async def __call__(
        self, signal: Signal, encoding: Encoding, body: bytearray, tenant: str, received_ns: int
    ) -> Accepted: ...
