"""A service that is stopped, killed and started again, on the same ports and the same store."""

import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil

from tests.app.service import COMMAND, environment
from tests.live.stored import span_ids

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

QUICK = ("--idle-close-s", "0.5", "--rootless-close-s", "0.5")
"""Flags with which requests close, and their spans are stored, soon."""

PATIENCE_S = 120.0
_COMPILED_WITHIN_S = 600.0  # at the first start on a machine


def until(true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for what others do by themselves. Raises AssertionError after `patience_s`."""
    give_up_s = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < give_up_s, f"it never came true in {patience_s:.0f} s"
        time.sleep(0.02)


class Service:
    """`tailburn serve` on one store and three ports, life after life."""

    def __init__(self, store: Path, *flags: object, authority: Path | None = None) -> None:
        """`authority` is the PEM file of who issued its certificate, where `flags` name one."""
        self.store = store
        self.http_port, self.grpc_port, self.web_port = free_ports(3)
        self.flags = (
            *("--store", store, "--http-port", self.http_port),
            *("--grpc-port", self.grpc_port, "--web-port", self.web_port, *flags),
        )
        scheme = "https" if authority else "http"
        self.http = f"{scheme}://localhost:{self.http_port}"
        self.grpc = f"localhost:{self.grpc_port}"
        self.web = f"{scheme}://localhost:{self.web_port}"
        self._verify = ssl.create_default_context(cafile=authority)
        self._said = store.with_name(store.name + ".said")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def cpu_s(self) -> float:
        """CPU time of this life so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    @property
    def said(self) -> str:
        """What all lives together wrote to standard error."""
        return self._said.read_text()

    def spawn(self, **variables: str) -> None:
        """Start a life, with these in its environment; it is not ready yet."""
        arguments = list(map(str, (*COMMAND, "serve", *self.flags)))
        # As on a user's machine: modules once compiled stay so.
        env = {k: v for k, v in environment().items() if k != "PYTHONDONTWRITEBYTECODE"}
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(arguments, stderr=said, cwd=self.store.parent, env=env)

    def start(self, **variables: str) -> float:
        """Start a life and wait until it is ready; the seconds that took."""
        began_s = time.monotonic()
        self.spawn(**variables)
        self.wait_until_ready()
        return time.monotonic() - began_s

    def wait_until_ready(self) -> None:
        until(self._is_ready, _COMPILED_WITHIN_S)

    def stop(self) -> int:
        """SIGTERM, then the exit code."""
        self._running.send_signal(signal.SIGTERM)
        return self._running.wait(PATIENCE_S)

    def kill(self) -> None:
        """kill -9."""
        self._running.kill()
        self._running.wait()

    def end(self) -> None:
        """Whatever state it is in."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.web + path, timeout=60, trust_env=False, verify=self._verify)

    def rows(self, path: str) -> list[dict[str, Any]]:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return found

    def act(self, incident: int, action: str) -> None:
        """What ada does to an incident."""
        url = f"{self.web}/api/incidents/{incident}/{action}"
        answer = httpx.post(url, json={"who": "ada"}, trust_env=False, verify=self._verify)
        assert answer.status_code == 200, answer.text

    def totals(self) -> dict[str, int]:
        """The balance over all resources, which must add up in each."""
        totals: dict[str, int] = {}
        for row in self.rows("/api/balance"):
            counts = {name: n for name, n in row.items() if name != "resource"}
            assert counts["received"] == sum(counts.values()) - counts["received"], row
            totals = {name: totals.get(name, 0) + n for name, n in counts.items()}
        return totals

    def settle(self, received: int) -> None:
        """Wait until that many spans are worked through, and all are in the store."""

        def settled() -> bool:
            totals = self.totals()
            if totals.get("received", 0) < received or totals["open"]:
                return False
            return span_ids(self.store).total() >= totals["stored"]

        until(settled)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        """A body of traces over HTTP; `content_type` is protobuf's unless given."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(
            f"{self.http}/v1/traces",
            content=body,
            headers={"content-type": "application/x-protobuf"} | given,
            timeout=60,
            trust_env=False,
            verify=self._verify,
        )

    @contextmanager
    def export(self) -> Iterator["grpc.UnaryUnaryMultiCallable[bytes, bytes]"]:
        """Sends a body of traces over gRPC."""
        with grpc.insecure_channel(self.grpc) as channel:
            yield channel.unary_unary(EXPORT)

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "it was never started"
        return self._process

    def _is_ready(self) -> bool:
        code = self._running.poll()
        assert code is None, f"it ended with {code} before it was ready:\n{self.said}"
        try:
            return self.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def living(store: Path, *flags: object, authority: Path | None = None) -> Iterator[Service]:
    """A service that is ready, and ended in any case."""
    service = Service(store, *flags, authority=authority)
    try:
        service.start()
        yield service
    finally:
        service.end()


def run(*arguments: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A `tailburn` command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment() | variables,
    )


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nothing listens on at this moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
