"""How long a real Prometheus takes for each rule."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

EVERY_S: Final = 5
_INTERVAL: Final = re.compile(r"^(    interval: ).*$", re.M)
_PATIENCE_S: Final = 120


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
        answer = self._client.get("/api/v1/query", params={"query": promql}).json()
        return [sample["metric"] for sample in answer["data"]["result"]]

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
    """Over the TSDB in `folder`/tsdb; it scrapes nothing."""
    (folder / "rules.yml").write_text(_INTERVAL.sub(rf"\g<1>{EVERY_S}s", rules))
    config = {
        "global": {"evaluation_interval": f"{EVERY_S}s"},
        "rule_files": [str(folder / "rules.yml")],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = _free_port()
    arguments = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--storage.tsdb.retention.time=90d",
        "--query.lookback-delta=15m",  # the past ends when it was written, some minutes ago
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(arguments, stdout=said, stderr=said, cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, folder / "said")
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", said: Path) -> None:
    give_up_s = time.monotonic() + _PATIENCE_S
    while True:
        if process.poll() is not None or time.monotonic() > give_up_s:
            raise RuntimeError(said.read_text())
        try:
            if httpx.get(f"{url}/-/ready", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
