"""Chains sent to one service over HTTP at full speed, each an hour of lab time after the last."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.lab.ear.arrived import Arrived
from bench.lab.ear.chains import Chain
from bench.lab.ear.scenes import Scene
from tailburn.engine.schema import REQUESTS
from tailburn.engine.store.parquet import ParquetStore
from tailburn.lab.faults.scenario import TelemetryFault
from tailburn.lab.faults.telemetry import SpanFaults
from tailburn.lab.telemetry.sender import Sender, Sent
from tailburn.lab.telemetry.spans import Body, SpanTelemetry

EPOCH_NS: Final = 1_764_600_000 * 10**9
HOUR_NS: Final = 3_600 * 10**9


@dataclass(frozen=True)
class Fed:
    """What was sent of one chain."""

    chain: Chain
    scene: Scene
    seed: int
    epoch_ns: int
    telemetry: SpanTelemetry
    sent: Sent
    arrived: frozenset[str]
    """Traces that must have a row."""


def feed(
    url: str,
    chain: Chain,
    scene: Scene,
    number: int,
    faults: Sequence[TelemetryFault] = (),
) -> Fed:
    """Send all of a chain; `faults` break its telemetry on the way."""
    seed, epoch_ns = 1_000 + number, EPOCH_NS + number * HOUR_NS
    telemetry = SpanTelemetry(chain.wiring(scene), seed=seed, epoch_unix_ns=epoch_ns)
    broken = SpanFaults(faults, scene.fleet, number)
    broken.set_up(telemetry)
    arrived = Arrived()

    def noted(bodies: Iterator[Body]) -> Iterator[Body]:
        for at_ns, body in bodies:
            arrived.take(body)
            yield at_ns, body

    with Sender(url, epoch_unix_ns=epoch_ns) as sender:
        sender.send_all(noted(broken.of(_bodies(telemetry, scene))))
        sender.send_all(noted(broken.finish()))
        return Fed(chain, scene, seed, epoch_ns, telemetry, sender.sent, arrived.traces())


def _bodies(telemetry: SpanTelemetry, scene: Scene) -> Iterator[Body]:
    yield from telemetry.feed(scene.attempts, 0)
    yield from telemetry.finish()


def strike(url: str, number: int) -> None:
    """Let the hour after the last chain strike: whatever is open closes."""
    with Sender(url, epoch_unix_ns=EPOCH_NS + number * HOUR_NS) as sender:
        sender.send(0, b"")


def rows_of(store: Path) -> list[dict[str, Any]]:
    """The rows that stand: of each request the last version, tombstones left out."""
    told = [name for name in REQUESTS.names if name != "digests"]
    found = ParquetStore(store).requests(columns=told).sort_by("start_ns")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def until(true: Callable[[], bool], patience_s: float = 120.0) -> None:
    """Wait for what others do by themselves; TimeoutError after `patience_s`."""
    give_up_s = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"it never came true in {patience_s:.0f} s")
        time.sleep(0.05)
