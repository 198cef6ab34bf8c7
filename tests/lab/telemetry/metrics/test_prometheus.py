"""A real Prometheus finds the targets by discovery, scrapes them, and answers as they show."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tailburn.lab.telemetry.metrics import LiveTargets
from tests.lab.telemetry.metrics.running import run, target, value
from tests.live.service import free_ports, until

CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: lab
    http_sd_configs: [{url: "http://ADDRESS/http_sd", refresh_interval: 1s}]
"""


@pytest.mark.program("prometheus")
def test_prometheus_discovers_and_scrapes_every_target(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    scrapes = run().scrapes()[1]
    (port,) = free_ports(1)
    with LiveTargets() as live:
        live.show(scrapes)
        (tmp_path / "prometheus.yml").write_text(CONFIG.replace("ADDRESS", live.address))
        with subprocess.Popen(
            [
                need_program("prometheus"),
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        ) as prometheus:
            try:
                _holds(port, scrapes)
            finally:
                prometheus.terminate()


def _holds(port: int, scrapes: Any) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1") as client:
        until(lambda: len(_asked(client, "up == 1")) == len(scrapes.targets), patience_s=60.0)
        text = scrapes.text(target(scrapes, "vllm-0"), len(scrapes) - 1)
        for metric in ("vllm:num_requests_running", "vllm:generation_tokens_total"):
            (found,) = _asked(client, f'{metric}{{pod="vllm-0"}}')
            assert float(found["value"][1]) == value(text, metric)
            assert found["metric"]["job"] == "engine"
            assert found["metric"]["zone"] == "zone-a"
        clocks = _asked(client, "DCGM_FI_DEV_SM_CLOCK")
        assert {one["metric"]["hostname"] for one in clocks} == {"node-0"}
        assert len(clocks) == 8


def _asked(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    try:
        answer = client.get("/query", params={"query": expression})
    except httpx.TransportError:
        return []
    # 503 while it starts.
    return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []
