"""A service as its own process, on free ports."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.settings import TABLE

COMMAND = (sys.executable, "-m", "tailburn.app")
FREE_PORTS = ("--http-port", "0", "--grpc-port", "0", "--web-port", "0")
_ADDRESS = re.compile(r"(web|OTLP/HTTP|OTLP/gRPC) ([^ ,\n]+)")


@dataclass(frozen=True)
class Running:
    """A service that is ready. `said` is what it wrote until then."""

    store: Path
    process: "subprocess.Popen[str]"
    addresses: dict[str, str]
    said: str

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.addresses["web"] + path, timeout=30)

    def rows(self, path: str) -> list[dict[str, Any]]:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return found

    def totals(self) -> dict[str, int]:
        """The balance over all resources."""
        rows = self.rows("/api/balance")
        names = rows[0].keys() - {"resource"} if rows else ()
        return {name: sum(row[name] for row in rows) for name in names}

    def stop(self) -> int:
        """SIGTERM, then the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def environment() -> dict[str, str]:
    """Without settings from outside, and without `.env` proxies in the way of loopback."""
    unwanted = {row.variable for row in TABLE} | {"TAILBURN_CONFIG", "http_proxy", "HTTP_PROXY"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


@contextmanager
def serving(store: Path, *flags: object) -> Iterator[Running]:
    """A service on `store`, killed at the end where the test did not stop it."""
    arguments = [*COMMAND, "serve", "--store", store, *FREE_PORTS, *flags]
    process = subprocess.Popen(
        list(map(str, arguments)),
        stderr=subprocess.PIPE,
        text=True,
        cwd=store.parent,
        env=environment(),
    )
    assert process.stderr is not None
    try:
        said = _until_ready(process.stderr)
        yield Running(store, process, dict(_ADDRESS.findall(said[-1])), "".join(said))
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _until_ready(stderr: IO[str]) -> list[str]:
    said = []
    for line in stderr:
        said.append(line)
        if "ready: " in line:
            return said
    raise AssertionError("the service ended before it was ready:\n" + "".join(said))


def refused(*arguments: object) -> tuple[int, str]:
    """Exit code and standard error of a command that should not run."""
    ended = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=environment()
    )
    return ended.returncode, ended.stderr


def chat(number: int, start_ns: int) -> ExportTraceServiceRequest:
    """One LLM call as its client saw it: 64 tokens, the first after 250 ms."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "chat-app"
    span = resource.scope_spans.add().spans.add(name="chat tiny-llama", kind=3)
    span.trace_id, span.span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
    span.start_time_unix_nano, span.end_time_unix_nano = start_ns, start_ns + 2_000_000_000
    texts = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny-llama"}
    for key, text in texts.items():
        span.attributes.add(key=key).value.string_value = text
    span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 64
    first = span.attributes.add(key="gen_ai.response.time_to_first_chunk")
    first.value.double_value = 0.25
    return request


def send(address: str, request: ExportTraceServiceRequest) -> httpx.Response:
    return httpx.post(
        f"{address}/v1/traces",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
        timeout=30,
    )
