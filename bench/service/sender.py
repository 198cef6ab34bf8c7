"""A lean sender in a process of its own: prepared bodies over keep-alive connections.

    python -m bench.service.sender --port 4318 --seconds 20 [--rate BODIES_A_SECOND] [--grpc]

Without a rate each connection sends as soon as its last body is acknowledged, and waits where
the service asks it to. With one, bodies are due at that rate whatever the service does, and a
refused body is not sent again; how late a body is sent, for want of a free connection or of
CPU, is told as well. Prints one JSON object.
"""

import argparse
import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import grpc

from bench.service.fresh import FreshBody, fresh_bodies

_LONGEST_WAIT_S: Final = 30.0
_EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_HTTP_OF: Final = {grpc.StatusCode.UNAVAILABLE: 503, grpc.StatusCode.RESOURCE_EXHAUSTED: 413}


@dataclass
class Sent:
    """What became of the bodies."""

    acknowledged_spans: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry_after: int = 0  # of the refused
    acks_s: list[float] = field(default_factory=list)
    lates_s: list[float] = field(default_factory=list)  # sent after it was due

    def add(self, other: "Sent") -> None:
        self.acknowledged_spans += other.acknowledged_spans
        self.statuses += other.statuses
        self.without_retry_after += other.without_retry_after
        self.acks_s += other.acks_s
        self.lates_s += other.lates_s


class Connection(Protocol):
    """One request at a time."""

    def post(self, body: bytearray) -> None:
        """Send; `answer` must follow, and `body` may change before it."""

    def answer(self) -> tuple[int, float | None]:
        """Status, and the seconds after which to come again where the service says so."""

    def close(self) -> None: ...


class HttpConnection:
    """OTLP/HTTP, kept alive."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _LONGEST_WAIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            "content-type: application/x-protobuf\r\ncontent-length: "
        ).encode()

    def post(self, body: bytes | bytearray, further: str = "") -> None:
        """`further` headers end in CRLF each."""
        self._socket.sendall(self._head + f"{len(body)}\r\n{further}\r\n".encode())
        self._socket.sendall(body)

    def answer(self) -> tuple[int, float | None]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, rest = data.partition(b"\r\n\r\n")
        headers = dict(_header(line) for line in head.split(b"\r\n")[1:])
        missing = int(headers.get(b"content-length", b"0")) - len(rest)
        while missing > 0:
            missing -= len(self._received())
        retry_after = headers.get(b"retry-after")
        return int(head[9:12]), None if retry_after is None else float(retry_after)

    def close(self) -> None:
        self._socket.close()

    def _received(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the service closed the connection")
        return data


class GrpcConnection:
    """OTLP/gRPC, a channel of its own. Statuses as HTTP would have them; 500 for the rest."""

    def __init__(self, port: int) -> None:
        alone = [("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", alone)
        self._export = self._channel.unary_unary(_EXPORT)
        self._call: grpc.Future | None = None

    def post(self, body: bytearray) -> None:
        self._call = self._export.future(bytes(body), _LONGEST_WAIT_S)

    def answer(self) -> tuple[int, float | None]:
        assert self._call is not None, "nothing was posted"
        try:
            self._call.result()
        except grpc.RpcError:
            return _HTTP_OF.get(self._call.code(), 500), None
        return 200, None

    def close(self) -> None:
        self._channel.close()


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


class Sender:
    """Bodies of one round after another, shared by all connections."""

    def __init__(self, bodies: list[FreshBody], seconds: float, rate: float | None) -> None:
        self.sent = Sent()
        self._bodies = bodies
        self._locks = [threading.Lock() for _ in bodies]
        self._numbers = itertools.count()
        self._seconds, self._rate = seconds, rate
        self._lock = threading.Lock()

    def run(self, connect: Callable[[], Connection], connections: int) -> float:
        """Send until the time is over; the seconds until the last answer came."""
        began_s = time.monotonic()
        threads = [
            threading.Thread(target=self._send, args=(connect(), began_s))
            for _ in range(connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - began_s

    def _send(self, connection: Connection, began_s: float) -> None:
        mine = Sent()
        while (number := next(self._numbers)) is not None:
            due_s = began_s + number / self._rate if self._rate else time.monotonic()
            if due_s >= began_s + self._seconds:
                break
            time.sleep(max(0.0, due_s - time.monotonic()))
            mine.lates_s.append(max(0.0, time.monotonic() - due_s))
            retry_after_s = self._send_one(connection, number, mine)
            if retry_after_s and not self._rate:
                time.sleep(retry_after_s)
        connection.close()
        with self._lock:
            self.sent.add(mine)

    def _send_one(self, connection: Connection, number: int, mine: Sent) -> float | None:
        round_number, at = divmod(number, len(self._bodies))
        with self._locks[at]:
            body, sent_s = self._bodies[at], time.monotonic()
            connection.post(body.renew(round_number, time.time_ns()))
        status, retry_after_s = connection.answer()
        mine.statuses[status] += 1
        if status == 200:
            mine.acknowledged_spans += body.spans
            mine.acks_s.append(time.monotonic() - sent_s)
        elif retry_after_s is None:
            mine.without_retry_after += 1
        return retry_after_s


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--spans", type=int, default=512)
    parser.add_argument("--bodies", type=int, default=128)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--grpc", action="store_true")
    a = parser.parse_args()
    sender = Sender(fresh_bodies(a.bodies, a.spans), a.seconds, a.rate)
    connection = GrpcConnection if a.grpc else HttpConnection
    took_s = sender.run(lambda: connection(a.port), a.connections)
    sent = sender.sent
    print(
        json.dumps(
            {
                "took_s": took_s,
                "acknowledged_spans": sent.acknowledged_spans,
                "statuses": sent.statuses,
                "without_retry_after": sent.without_retry_after,
                "acks_s": sorted(sent.acks_s),
                "lates_s": sorted(sent.lates_s),
            }
        )
    )


if __name__ == "__main__":
    main()
