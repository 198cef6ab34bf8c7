"""A service as a process of its own on a fresh store, and what it spends."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb
import psutil

from tailburn.app.settings import TABLE

SERVICE: Final = ("-m", "tailburn.app")
BASELINE: Final = ("-m", "bench.service.baseline")

# What ends in mid-request with a round of bodies has no root; it is not to be waited for long.
_FLAGS: Final = (
    "--http-port", "0", "--grpc-port", "0", "--web-port", "0", "--rootless-close-s", "5",
)  # fmt: skip
_PORT: Final = re.compile(r"(web|OTLP/HTTP|OTLP/gRPC) (?:http://)?127\.0\.0\.1:(\d+)")
_SAMPLE_S: Final = 0.5
_QUIET_CPU_SHARE: Final = 0.05
_CLOSED_WITHIN_S: Final = 7.0  # requests close five seconds after their last span
_SETTLED_WITHIN_S: Final = 300.0


@dataclass
class Memory:
    """Resident bytes over a run, sample by sample."""

    samples: list[int] = field(default_factory=list)

    @property
    def peak_bytes(self) -> int:
        return max(self.samples)

    @property
    def growth_ratio(self) -> float:
        """Mean of the last third of the run against that of the middle third."""
        third = max(len(self.samples) // 3, 1)
        middle, last = self.samples[third : 2 * third], self.samples[-third:]
        return (sum(last) / len(last)) / (sum(middle) / len(middle)) - 1


class Process:
    """A process that is being measured."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def cpu_s(self) -> float:
        """User and system time so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def rss_bytes(self) -> int:
        return int(self._process.memory_info().rss)

    @contextmanager
    def watched(self, every_s: float = _SAMPLE_S) -> Iterator[Memory]:
        """Memory while the block runs."""
        memory, over = Memory(), threading.Event()

        def watch() -> None:
            while not over.wait(every_s):
                memory.samples.append(self.rss_bytes())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield memory
        finally:
            over.set()
            thread.join()

    def until_quiet(self, quiet_for_s: float = _SAMPLE_S) -> None:
        """Wait until it has spent next to nothing for a while."""
        give_up_s = time.monotonic() + _SETTLED_WITHIN_S
        quiet_s, before_s = 0.0, self.cpu_s()
        while quiet_s < quiet_for_s:
            if time.monotonic() > give_up_s:
                raise TimeoutError("the service does not come to rest")
            time.sleep(_SAMPLE_S)
            now_s = self.cpu_s()
            busy = now_s - before_s > _QUIET_CPU_SHARE * _SAMPLE_S
            quiet_s, before_s = 0.0 if busy else quiet_s + _SAMPLE_S, now_s


@dataclass(frozen=True)
class Service:
    """A service that is ready."""

    store: Path
    process: Process
    ports: dict[str, int]  # of web, OTLP/HTTP, OTLP/gRPC

    def balance(self) -> dict[str, int]:
        """Spans received and what became of them, over all resources."""
        url = f"http://127.0.0.1:{self.ports['web']}/api/balance"
        with urllib.request.urlopen(url, timeout=60) as answer:
            rows = json.load(answer)
        names = rows[0].keys() - {"resource"} if rows else ()
        return {name: sum(row[name] for row in rows) for name in names}

    def requests(self) -> int:
        """Requests in the store, counted in its files."""
        files = f"{self.store}/requests/*/*/*.parquet"
        found = duckdb.sql(f"SELECT count(DISTINCT request_id) FROM read_parquet('{files}')")
        return int(found.fetchall()[0][0])

    def until_stored(self) -> dict[str, int]:
        """Wait until every span and every request is in the store; the balance then."""
        give_up_s = time.monotonic() + _SETTLED_WITHIN_S
        while self.balance()["open"]:
            if time.monotonic() > give_up_s:
                raise TimeoutError("spans are still open")
            time.sleep(_SAMPLE_S)
        self.process.until_quiet(_CLOSED_WITHIN_S)
        return self.balance()


@contextmanager
def serving(
    folder: Path, module: Sequence[str] = SERVICE, flags: Sequence[str] = ()
) -> Iterator[Service]:
    """Start on a new store under `folder`; ended by SIGTERM, and killed if that fails."""
    store = folder / f"store-{time.monotonic_ns()}"
    command = [sys.executable, *module, "serve", "--store", str(store), *_FLAGS, *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment())
    try:
        said, ports = _until_ready(process)
        drain = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        drain.start()
        yield Service(store, Process(process.pid), ports)
        process.send_signal(signal.SIGTERM)
        process.wait(_SETTLED_WITHIN_S)
    finally:
        process.kill()
        process.wait()


def _until_ready(process: "subprocess.Popen[str]") -> tuple[list[str], dict[str, int]]:
    said: list[str] = []
    for line in process.stderr or ():
        said.append(line)
        if "ready: " in line:
            return said, {name: int(port) for name, port in _PORT.findall(line)}
    raise RuntimeError("the service ended before it was ready:\n" + "".join(said))


def _environment() -> dict[str, str]:
    """Without settings from outside."""
    unwanted = {row.variable for row in TABLE} | {"TAILBURN_CONFIG"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}
