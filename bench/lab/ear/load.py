"""The ear under the lab's load: a fleet's bodies as they come, as fast as they are taken.

Beside the bodies of `bench.service` in the same run: those are 512 spans each, the fleet's as
many as its processes had to tell in five seconds.
"""

import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Figure
from bench.lab.ear.feeding import EPOCH_NS, HOUR_NS
from bench.service.running import Service, serving
from bench.service.sender import HttpConnection
from bench.service.sending import measure
from tailburn.lab.fleet import standard
from tailburn.lab.telemetry.sender import RECEIVED_HEADER
from tailburn.lab.telemetry.spans import Body, SpanTelemetry
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload.profiles import named
from tailburn.lab.workload.stream import Workload
from tailburn.lab.world.world import World

MINUTE_NS: Final = 60 * 10**9
_WARM_SHARE: Final = 0.25


@dataclass(frozen=True)
class Load:
    """Bodies in order of arrival, and the spans in them."""

    bodies: Sequence[Body]
    spans: int
    requests: int


def load(per_s: float, minutes: int, seed: int) -> Load:
    """What a fleet of the usual stacks sends in so many minutes."""
    workload = Workload(named("azure-conv"), seed=seed, per_s=per_s)
    clients = workload.clients
    fleet = standard(per_s, clients=len(clients.names), routes=clients.routes)
    world = World(fleet, seed)
    telemetry = SpanTelemetry(wiring_of(fleet), seed=seed, epoch_unix_ns=EPOCH_NS)
    bodies: list[Body] = []
    told = 0
    for minute, requests in enumerate(workload.minutes(0, minutes)):
        world.feed(requests)
        attempts = world.advance((minute + 1) * MINUTE_NS)
        told += len(attempts)
        bodies += telemetry.feed(attempts, (minute + 1) * MINUTE_NS)
    bodies += telemetry.finish()
    return Load(bodies, telemetry.spans, told)


def send(port: int, bodies: Sequence[Body], connections: int = 4) -> int:
    """Send all, several at once, each again until it is taken; how many were refused."""
    lock, waiting = threading.Lock(), iter(bodies)

    def work(connection: HttpConnection) -> int:
        refused = 0
        while True:
            with lock:
                at_ns, body = next(waiting, (0, None))
            if body is None:
                break
            while True:
                connection.post(body, f"{RECEIVED_HEADER}: {EPOCH_NS + at_ns}\r\n")
                if connection.answer()[0] == 200:
                    break
                refused += 1
        connection.close()
        return refused

    with ThreadPoolExecutor(connections) as pool:
        return sum(pool.map(work, [HttpConnection(port) for _ in range(connections)]))


def figures(
    per_s: float = 100.0, minutes: int = 5, seconds: float = 20.0, seed: int = 5
) -> list[Figure]:
    """Raises RuntimeError where a span that was acknowledged is not in the store."""
    told = load(per_s, minutes, seed)
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        usual = measure(Path(folder), seconds)
        with serving(Path(folder), flags=("--clock", "telemetry")) as service:
            rate, peak, lost, refused = _measured(service, told)
    each = told.spans / len(told.bodies)
    print(f"{told.requests:,} attempts, {told.spans:,} spans, {each:.0f} a body", file=sys.stderr)
    if lost:
        raise RuntimeError(f"{lost} spans acknowledged and not in the store")
    beside = "bench.service: made bodies of 512 spans, same run"
    return [
        Figure("the ear under the lab's load, to durable rows", [rate], "spans/cpu-s",
               usual.spans_per_cpu_s, beside),
        Figure("spans a body under the lab's load", [each]),
        Figure("memory, peak under the lab's load", [peak / 1e6], "MB", usual.peak_bytes / 1e6,
               beside, True),
        Figure("bodies refused under the lab's load", [refused]),
        Figure("acknowledged spans lost under the lab's load", [lost]),
    ]  # fmt: skip


def _measured(service: Service, told: Load) -> tuple[float, int, int, int]:
    """(spans per CPU second after a warm-up, peak bytes, spans lost, refusals)."""
    port, warm = service.ports["OTLP/HTTP"], int(len(told.bodies) * _WARM_SHARE)
    with service.process.watched() as memory:
        send(port, told.bodies[:warm])
        before, before_s = service.balance()["received"], service.process.cpu_s()
        refused = send(port, told.bodies[warm:])
        later = told.bodies[-1][0] + HOUR_NS
        send(port, [(later, b""), (later + HOUR_NS, b"")], connections=1)
        balance = service.until_stored()
    rate = (balance["received"] - before) / (service.process.cpu_s() - before_s)
    kept = sum(balance[name] for name in ("stored", "folded", "sampled_out"))
    return rate, memory.peak_bytes, told.spans - kept, refused
