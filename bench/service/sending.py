"""A sender in its own process, and what the service spent while it sent."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.service.running import SERVICE, Process, Service, serving

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
        return self.balance["stored"] / self.cpu_s

    @property
    def lost_spans(self) -> int:
        """Acknowledged and not in the balance; below 0: more there than acknowledged."""
        return self.outcome.acknowledged_spans - self.balance["received"]


def _quantile(rising: list[float], q: float) -> float:
    return rising[int(q * (len(rising) - 1))] if rising else math.nan


def send(port: int, seconds: float, spans: int = 512, *flags: object) -> Outcome:
    """Send from a process of its own."""
    command = [
        sys.executable, "-m", "bench.service.sender", "--port", port, "--seconds", seconds,
        "--spans", spans, "--bodies", max(BODIES, BODIES * 64 // spans), *flags,
    ]  # fmt: skip
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout)
    return Outcome(**said)


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
    port = service.ports["OTLP/gRPC" if "--grpc" in flags else "OTLP/HTTP"]
    before_s = service.process.cpu_s()
    with service.process.watched() as memory:
        outcome = send(port, seconds, spans, *flags)
    balance = service.until_stored()
    return Run(
        outcome,
        service.process.cpu_s() - before_s,
        balance,
        memory.peak_bytes,
        memory.growth_ratio,
        service.requests(),
    )


def receive_only(process: Process, port: int, seconds: float) -> float:
    """Spans per CPU second of something that keeps nothing."""
    before_s = process.cpu_s()
    outcome = send(port, seconds)
    process.until_quiet()
    return outcome.acknowledged_spans / (process.cpu_s() - before_s)
