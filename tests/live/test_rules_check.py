"""`tailburn rules check --prometheus` against a real Prometheus that scrapes an engine."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailburn.app.prometheus_api import PrometheusApi
from tests.app.targets import answering
from tests.live.monitoring import Prometheus, prometheus
from tests.live.service import run, until

SLOS = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: engine}
spec:
  vantage: engine
  window: 7d
  clocks: {ttft: {acceptable: {p95: 400ms, p99: 20s}}, tpot: {acceptable: {p95: 60ms}}}
  source: {engine: vllm, match: {job: tailburn}}
---
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: service}
spec: {vantage: gateway, window: 30d, availability: 99.9%}
"""

SCRAPED = """\
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.25"} 9
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.5"} 10
vllm:time_to_first_token_seconds_bucket{model_name="m",le="1.0"} 10
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 10
vllm:time_to_first_token_seconds_count{model_name="m"} 10
vllm:time_to_first_token_seconds_sum{model_name="m"} 2
"""


@pytest.fixture(scope="module")
def scraping(
    tmp_path_factory: pytest.TempPathFactory, need_program: Callable[[str], str]
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "rules").mkdir()
    program = need_program("prometheus")
    with (
        answering(SCRAPED.encode()) as target,
        prometheus(program, folder, folder / "rules", target) as running,
    ):
        until(lambda: bool(running.query("vllm:time_to_first_token_seconds_count")), 60)
        yield running


def test_it_is_asked_for_version_retention_and_series(scraping: Prometheus) -> None:
    api = PrometheusApi(scraping.url)
    assert int(api.version.split(".")[0]) >= 2
    assert api.retention_s == 15 * 86_400  # its default
    (sample,) = api.query("vllm:time_to_first_token_seconds_count")
    assert (sample.value, sample.labels["model_name"]) == (10, "m")


def test_what_it_lacks_is_found(scraping: Prometheus, tmp_path: Path) -> None:
    slos = tmp_path / "slos.yaml"
    slos.write_text(SLOS)
    ended = run("rules", "check", "-i", slos, "--prometheus", scraping.url, "--json")
    assert ended.returncode == 1, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {(row["slo"], row["code"], row["field"]) for row in rows} >= {
        ("engine", "BUCKET_MISSING", "spec.clocks.ttft.acceptable.p95"),
        ("engine", "TOP_BUCKET_TOO_LOW", "spec.clocks.ttft.acceptable.p99"),
        ("engine", "SERIES_MISSING", "spec.clocks.tpot"),
        ("service", "LOOKBACK_BEYOND_RETENTION", "spec.window"),
        ("service", "SERIES_MISSING", "spec.availability"),
    }
    assert "on this Prometheus" in next(r["limit"] for r in rows if r["code"] == "BUCKET_MISSING")
