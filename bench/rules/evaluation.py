"""How long a real Prometheus takes for each rule."""

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx

EVERY_S: Final = 5
_INTERVAL: Final = re.compile(r"^(    interval: ).*$", re.M)
_PATIENCE_S: Final = 120
_PAST: Final = "past"
_READ_WITHIN_S: Final = 20


@dataclass(frozen=True)
class Timed:
    """A rule of a group, and how long its evaluations took."""

    group: str
    name: str
    seconds: tuple[float, ...]


class Prometheus:
    """One that evaluates every group each `EVERY_S` seconds, whatever the group says."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def query(self, promql: str) -> list[dict[str, str]]:
        """The labels of each sample."""
        answer = self._client.get("/api/v1/query", params={"query": promql})
        if answer.status_code == 503:  # not ready yet
            return []
        return [sample["metric"] for sample in answer.json()["data"]["result"]]

    def timed(self, evaluations: int) -> list[Timed]:
        """So many evaluations of every group, the first of a life left out."""
        found: dict[tuple[str, int], dict[str, float]] = {}
        names: dict[tuple[str, int], str] = {}
        give_up_s = time.monotonic() + _PATIENCE_S
        while not found or min(map(len, found.values())) <= evaluations:
            if time.monotonic() > give_up_s:
                raise TimeoutError(f"no {evaluations} evaluations in {_PATIENCE_S} s")
            for group in self._groups():
                for place, rule in enumerate(group["rules"]):
                    key = group["name"], place
                    names[key] = rule["name"]
                    if rule["evaluationTime"]:
                        found.setdefault(key, {})[rule["lastEvaluation"]] = rule["evaluationTime"]
            time.sleep(EVERY_S / 4)
        return [
            Timed(key[0], names[key], tuple(t.values())[1 : evaluations + 1])
            for key, t in found.items()
        ]

    def wait_until_evaluated(self) -> None:
        """Until each rule was evaluated twice: rules that rest on others have what they need."""
        self.timed(2)

    def _groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self._client.get("/api/v1/rules").json()["data"]["groups"]
        for rule in (rule for group in groups for rule in group["rules"]):
            if rule.get("lastError"):
                raise ValueError(f"{rule['name']}: {rule['lastError']}")
        return groups


@contextmanager
def prometheus(program: str, folder: Path, rules: str) -> Iterator[Prometheus]:
    """Over the past in `folder`, as `history.write` leaves it."""
    (folder / "rules.yml").write_text(_INTERVAL.sub(rf"\g<1>{EVERY_S}s", rules))
    with _served(folder / "memory.txt") as past:
        config = {
            "global": {"evaluation_interval": f"{EVERY_S}s"},
            "rule_files": [str(folder / "rules.yml")],
            "scrape_configs": [_read_past(past)],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        port = _free_port()
        arguments = [
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            "--storage.tsdb.retention.time=90d",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(arguments, stdout=said, stderr=said, cwd=folder)
        try:
            running = Prometheus(f"http://127.0.0.1:{port}")
            _wait_until_read(running, process, folder / "said")
            yield running
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _served(page: Path) -> Iterator[str]:
    """Where `page` can be read once; who asks again gets an empty one."""
    pages = iter([page.read_bytes()])

    class _Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = next(pages, b"")
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def _read_past(address: str) -> dict[str, Any]:
    return {
        "job_name": _PAST,
        "scrape_interval": f"{_READ_WITHIN_S}s",
        "scrape_timeout": f"{_READ_WITHIN_S}s",
        "static_configs": [{"targets": [address]}],
        "metric_relabel_configs": [{"action": "labeldrop", "regex": "job|instance"}],
    }


def _wait_until_read(running: Prometheus, process: "subprocess.Popen[bytes]", said: Path) -> None:
    """Until the past is in memory.

    Raises:
        RuntimeError: the program ended, or took too long; with what it said.
    """
    give_up_s = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up_s:
        with suppress(httpx.TransportError):
            if running.query(f'sum_over_time(scrape_samples_scraped{{job="{_PAST}"}}[5m]) > 0'):
                return
        time.sleep(0.5)
    raise RuntimeError(said.read_text())


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
