"""The ear under the lab's load: a fleet's bodies as they come, as fast as they are taken.

Beside the bodies of `bench.service` in the same run: those are 512 spans each, the fleet's as
many as its processes had to tell in five seconds.
"""

import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Figure
from bench.lab.ear.feeding import EPOCH_NS
from bench.service.running import Service, serving
from bench.service.sending import measure
from tailburn.lab.fleet import standard
from tailburn.lab.telemetry.sender import RECEIVED_HEADER, rejected_spans
from tailburn.lab.telemetry.spans import SpanTelemetry
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload.profiles import named
from tailburn.lab.workload.stream import Workload
from tailburn.lab.world.world import World

MINUTE_NS: Final = 60 * 10**9
_WARM_SHARE: Final = 0.25
_HOUR_NS: Final = 3_600 * 10**9
_LARGEST_ANSWER: Final = 65_536

Body = tuple[int, bytes]


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


@dataclass
class Taken:
    """What became of bodies."""

    refused: int = 0
    rejected_spans: int = 0


class _Connection:
    """OTLP/HTTP kept alive, with the time at which each body arrives."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            f"content-type: application/x-protobuf\r\n{RECEIVED_HEADER}: "
        )

    def post(self, at_ns: int, body: bytes) -> tuple[int, int]:
        """(status, spans rejected)."""
        head = f"{self._head}{EPOCH_NS + at_ns}\r\ncontent-length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        headers, _, rest = data.partition(b"\r\n\r\n")
        length = 0
        for line in headers.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            length = int(value) if name.strip().lower() == b"content-length" else length
        while len(rest) < length:
            rest += self._received()
        return int(headers[9:12]), rejected_spans(rest)

    def close(self) -> None:
        self._socket.close()

    def _received(self) -> bytes:
        data = self._socket.recv(_LARGEST_ANSWER)
        if not data:
            raise ConnectionError("the service closed the connection")
        return data


def send(port: int, bodies: Sequence[Body], connections: int = 4) -> Taken:
    """Send all, several at once, each again until it is taken; a refusal is counted."""
    taken, lock, numbers = Taken(), threading.Lock(), iter(range(len(bodies)))

    def work() -> None:
        connection = _Connection(port)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            status = 0
            while status != 200:
                status, rejected = connection.post(*bodies[number])
                with lock:
                    taken.refused += status != 200
                    taken.rejected_spans += rejected
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def figures(
    per_s: float = 100.0, minutes: int = 5, seconds: float = 20.0, seed: int = 5
) -> list[Figure]:
    """Raises RuntimeError where a span that was acknowledged is not in the store."""
    told = load(per_s, minutes, seed)
    with tempfile.TemporaryDirectory(prefix="tailburn-bench-") as folder:
        usual = measure(Path(folder), seconds)
        with serving(Path(folder), flags=("--clock", "telemetry")) as service:
            rate, peak, lost, taken = _measured(service, told)
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
        Figure("bodies refused under the lab's load", [taken.refused]),
        Figure("acknowledged spans lost under the lab's load", [lost]),
    ]  # fmt: skip


def _measured(service: Service, told: Load) -> tuple[float, int, int, Taken]:
    """(spans per CPU second after a warm-up, peak bytes, spans lost, refusals)."""
    port, warm = service.ports["OTLP/HTTP"], int(len(told.bodies) * _WARM_SHARE)
    with service.process.watched() as memory:
        send(port, told.bodies[:warm])
        before, before_s = service.balance()["received"], service.process.cpu_s()
        taken = send(port, told.bodies[warm:])
        later = told.bodies[-1][0] + _HOUR_NS
        send(port, [(later, b""), (later + _HOUR_NS, b"")], connections=1)
        balance = service.until_stored()
    rate = (balance["received"] - before) / (service.process.cpu_s() - before_s)
    kept = sum(balance[name] for name in ("stored", "folded", "sampled_out"))
    return rate, memory.peak_bytes, told.spans - kept, taken
