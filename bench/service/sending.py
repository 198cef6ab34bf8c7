"""A sender in its own process, and what the service spent while it sent."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.service.running import SERVICE, Process, Service, serving

WARM_S: Final = 12.0
"""Of sending before CPU time is counted, until what is open has taken its memory for good.

A machine's first touch of memory is no cost of a span, and in a virtual machine a large one.
"""

BODIES: Final = 96  # prepared: 25 MB of 512 spans each, more than any cache holds


@dataclass(frozen=True)
class Outcome:
    """What a sender says of its run."""

    took_s: float
    acknowledged_spans: int
    statuses: dict[str, int]
    without_retry_after: int
    acks_s: list[float]  # rising
    lates_s: list[float]  # rising

    @property
    def spans_per_s(self) -> float:
        """Acknowledged, of wall time."""
        return self.acknowledged_spans / self.took_s

    @property
    def refused(self) -> int:
        return sum(count for status, count in self.statuses.items() if status != "200")

    def ack_s(self, q: float) -> float:
        """Quantile of the time from sending a body to its acknowledgement."""
        return _quantile(self.acks_s, q)

    def late_s(self, q: float) -> float:
        """Quantile of the time by which the sender was behind its schedule."""
        return _quantile(self.lates_s, q)


@dataclass(frozen=True)
class Run:
    """One run against one service, until all it took was in the store."""

    outcome: Outcome
    cpu_s: float
    measured_spans: int
    balance: dict[str, int]
    peak_bytes: int
    growth_ratio: float
    requests: int  # in the store

    def __str__(self) -> str:
        return (
            f"{self.spans_per_cpu_s:,.0f} spans/cpu-s, {self.outcome.spans_per_s:,.0f} spans/s, "
            f"{self.balance['stored']:,} spans and {self.requests:,} requests stored, "
            f"{self.outcome.refused} bodies refused"
        )

    @property
    def spans_per_cpu_s(self) -> float:
        return self.measured_spans / self.cpu_s

    @property
    def lost_spans(self) -> int:
        """Acknowledged and not in the balance; below 0: more there than acknowledged."""
        return self.outcome.acknowledged_spans - self.balance["received"]


def _quantile(rising: list[float], q: float) -> float:
    return rising[int(q * (len(rising) - 1))] if rising else math.nan


@contextmanager
def sending(port: int, seconds: float, spans: int, *flags: object) -> Iterator[list[Outcome]]:
    """A sender at work in a process of its own; what it says is in the list after the block."""
    command = [
        sys.executable, "-m", "bench.service.sender", "--port", port, "--seconds", seconds,
        "--spans", spans, "--bodies", max(BODIES, BODIES * 64 // spans), *flags,
    ]  # fmt: skip
    said: list[Outcome] = []
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        yield said
        text, _ = process.communicate()
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"the sender ended with {process.returncode}")
    found: dict[str, Any] = json.loads(text)
    said.append(Outcome(**found))


def measure(
    folder: Path,
    seconds: float,
    spans: int = 512,
    flags: Sequence[object] = (),
    module: Sequence[str] = SERVICE,
) -> Run:
    """Send to a service on a new store, over HTTP or with `--grpc` in `flags` over gRPC."""
    with serving(folder, module) as service:
        run = _measured(service, seconds, spans, flags)
    what = " ".join(map(str, [*module[1:], *flags]))
    print(f"{what}: {spans} spans a body, {run}", file=sys.stderr)
    return run


def _measured(service: Service, seconds: float, spans: int, flags: Sequence[object]) -> Run:
    """CPU from the end of the warm-up until all is settled, beside spans received after it."""
    port = service.ports["OTLP/gRPC" if "--grpc" in flags else "OTLP/HTTP"]
    with (
        service.process.watched() as memory,
        sending(port, WARM_S + seconds, spans, *flags) as said,
    ):
        time.sleep(WARM_S)
        before, before_s = service.balance().get("received", 0), service.process.cpu_s()
    balance = service.until_stored()
    return Run(
        said[0],
        service.process.cpu_s() - before_s,
        balance["received"] - before,
        balance,
        memory.peak_bytes,
        memory.growth_ratio,
        service.requests(),
    )


def receive_only(process: Process, port: int, seconds: float) -> float:
    """Spans per CPU second of something that keeps nothing."""
    before_s = process.cpu_s()
    with sending(port, seconds, 512) as said:
        pass
    process.until_quiet()
    return said[0].acknowledged_spans / (process.cpu_s() - before_s)
