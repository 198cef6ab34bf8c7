"""Scrapes over HTTP and in files, whole or broken."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tailburn.lab.faults.parts import TelemetryFault
from tailburn.lab.faults.telemetry import ScrapeFaults
from tailburn.lab.telemetry.metrics import LiveTargets, ScrapeFiles, Target
from tests.lab.telemetry.metrics.running import EPOCH, S, column, joined, parsed, run, target, value


class Broken:
    """Faults of scrapes: gateway-2 is late, vllm-1 has gaps, vllm-0's KV usage is stuck."""

    def answers(self, target: Target, at_ns: int) -> float | None:
        if target.name == "vllm-1" and at_ns % (30 * S) == 0:
            return None
        return {"gateway-2": 0.3, "main-router": 11.0}.get(target.name, 0.0)

    def touches(self, target: Target, name: str, counter: bool) -> bool:
        return target.name == "vllm-0" and name == "vllm:kv_cache_usage_perc"

    def text(self, target: Target, at_ns: int, text: bytes) -> bytes:
        return text + b"stuck 0\n" if target.name == "vllm-0" else text

    def value(
        self, target: Target, at_ns: int, name: str, labels: str, value: float, counter: bool
    ) -> float:
        assert self.touches(target, name, counter)
        return 0.0


def test_every_target_is_listed_and_served_at_its_path() -> None:
    scrapes = run().scrapes()[1]
    with LiveTargets() as live, httpx.Client(base_url=f"http://{live.address}") as client:
        assert client.get("/http_sd").json() == []
        live.show(scrapes)
        listed = client.get("/http_sd")
        assert listed.headers["content-type"] == "application/json"
        assert len(listed.json()) == len(scrapes.targets)
        for one in listed.json():
            assert one["targets"] == [live.address]
            assert all(isinstance(label, str) for label in one["labels"].values())
            page = client.get(one["labels"]["__metrics_path__"])
            assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert parsed(page.content)
        assert live.served == len(scrapes.targets)
        shown = client.get("/targets/vllm-0/metrics").content
        assert shown == scrapes.text(target(scrapes, "vllm-0"), len(scrapes) - 1)
        live.show(scrapes, 0)
        assert client.get("/targets/vllm-0/metrics").content == scrapes.text(
            target(scrapes, "vllm-0"), 0
        )
        assert client.get("/targets/vllm-9/metrics").status_code == 404
        assert client.get("/metrics").status_code == 404


def test_a_broken_target_answers_late_or_not_at_all() -> None:
    scrapes = run().scrapes(broken=Broken())[1]
    row = next(r for r, at in enumerate(scrapes.at_ns) if at % (30 * S) == 0)
    with LiveTargets() as live, httpx.Client(base_url=f"http://{live.address}") as client:
        live.show(scrapes, row)
        assert client.get("/targets/gateway-2/metrics").elapsed.total_seconds() > 0.3
        for gone in ("vllm-1", "main-router"):
            with pytest.raises(httpx.RemoteProtocolError):
                client.get(f"/targets/{gone}/metrics")
        assert client.get("/targets/vllm-0/metrics").content.endswith(b"stuck 0\n")


def test_series_have_the_same_faults_as_text() -> None:
    table = joined(run().scrapes(broken=Broken()))
    assert (
        column(table, "up", "vllm-1") == [1.0, 0.0] * 6
        or column(table, "up", "vllm-1") == [0.0, 1.0] * 6
    )
    assert sorted(column(table, "up", "vllm-1")) == [0.0] * 6 + [1.0] * 6
    assert column(table, "up", "main-router") == [0.0] * 12
    assert column(table, "scrape_duration_seconds", "main-router") == [10.0] * 12
    assert column(table, "smg_http_connections_active", "main-router") == []
    assert len(column(table, "vllm:num_requests_running", "vllm-1")) == 6
    assert set(column(table, "vllm:kv_cache_usage_perc", "vllm-0")) == {0.0}
    assert max(column(table, "vllm:kv_cache_usage_perc", "vllm-1")) > 0


def test_series_of_some_metrics_are_those_of_all() -> None:
    scrapes = run().scrapes()[0]
    some = ("vllm:num_requests_running", "vllm:time_to_first_token_seconds", "up")
    few, all_ = scrapes.series(some), scrapes.series()
    names = set(few["metric"].unique().to_pylist())
    assert names == {
        "up",
        "vllm:num_requests_running",
        *(f"vllm:time_to_first_token_seconds_{part}" for part in ("bucket", "count", "sum")),
    }
    for name in names:
        assert column(few, name, "vllm-0") == column(all_, name, "vllm-0")
    text = scrapes.text(target(scrapes, "vllm-0"), 2)
    assert text is not None
    running = column(all_, "vllm:num_requests_running", "vllm-0")
    assert running[2] == value(text, "vllm:num_requests_running")


def test_files_are_open_metrics_that_prometheus_takes_in(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    promtool = need_program("promtool")
    files = ScrapeFiles(tmp_path / "scrapes", EPOCH)
    scrapes = run().scrapes()
    for one in scrapes:
        files.write(one)
    written = files.close()
    assert files.scrapes == 12
    assert {path.stem for path in written} == {one.name for one in scrapes[0].targets}
    assert sorted((tmp_path / "scrapes").iterdir()) == sorted(written)
    for name in ("vllm-0", "gateway-1", "main-router", "nccl-inspector-node-0"):
        path = tmp_path / "scrapes" / f"{name}.om"
        made = subprocess.run(
            [
                promtool,
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                path,
                tmp_path / f"tsdb {name}",
            ],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
    (tmp_path / "tsdb vllm-0" / "wal").mkdir()
    named = '{__name__="vllm:num_requests_running"}'
    listed = subprocess.run(
        [promtool, "tsdb", "dump", "--match", named, tmp_path / "tsdb vllm-0"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    told = [float(line.split()[-2]) for line in listed]
    assert told == column(joined(scrapes), "vllm:num_requests_running", "vllm-0")
    assert 'pod="vllm-0"' in listed[0] and 'engine="0"' in listed[0]


def test_files_pass_the_strict_parser_and_keep_labels_of_both(tmp_path: Path) -> None:
    files = ScrapeFiles(tmp_path / "scrapes", EPOCH)
    scrapes = run().scrapes()[1].rows(slice(0, 1))
    files.write(scrapes)
    paths = {path.stem: path for path in files.close()}
    for path in paths.values():
        # Bounds as Rust prints them ("1") are not what the strict parser wants ("1.0").
        if path.stem != "main-router":
            assert _strictly(path)
    families = {family.name: family for family in _strictly(paths["gateway-1"])}
    assert families["litellm_in_flight_requests"].type == "gauge"
    up = families["up"].samples
    assert [sample.value for sample in up] == [1.0] * len(scrapes)
    stamps = [(EPOCH + at) / 1e9 for at in scrapes.at_ns.tolist()]
    assert [float(str(sample.timestamp)) for sample in up] == stamps
    nccl = paths["nccl-inspector-node-0"].read_text()
    assert 'node="node-0"' in nccl and 'exported_node="node-0"' in nccl
    with pytest.raises(FileExistsError, match="new or an empty folder"):
        ScrapeFiles(tmp_path / "scrapes", EPOCH)


def _strictly(path: Path) -> list[Metric]:
    return list(text_string_to_metric_families(path.read_text()))  # type: ignore[no-untyped-call]


def test_text_and_series_have_the_same_resets_gaps_and_stuck_gauges() -> None:
    end = 180 * S
    faults = (
        TelemetryFault("counter_reset", 1.0, "vllm-0", 80 * S, end),
        TelemetryFault("kv_stuck", 0.0, "kind:engine", 60 * S, end),
        TelemetryFault("scrape_gap", 0.4, "vllm-1", 0, end),
    )
    broken = ScrapeFaults(faults, seed=3)
    told = run().scrapes(broken=broken)
    table = joined(told)
    pages = [
        one.text(target(one, "vllm-0"), row) for one in told for row in range(len(one)) if len(one)
    ]
    for name in ("vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_count"):
        shown = column(table, name, "vllm-0")
        assert shown == [value(page, name) for page in pages if page is not None]
        assert [i for i in range(1, 12) if shown[i] < shown[i - 1]] == [6]
    usage = column(table, "vllm:kv_cache_usage_perc", "vllm-0")
    assert min(usage[1:4]) > 0 and set(usage[4:]) == {0.0}
    assert 3 < len(column(table, "vllm:num_requests_running", "vllm-1")) < 11


def test_a_tokenizer_that_is_behind_makes_scrapes_late_and_then_none() -> None:
    """The engine's front end answers scrapes from the loop that waits for its tokenizer."""
    here = run((("tokenizer_factor", 600.0, "vllm-0", 60, 400),))
    table = joined(here.scrapes(), ("scrape_duration_seconds", "up"))
    late = column(table, "scrape_duration_seconds", "vllm-0")
    assert max(late[:4]) < 0.1
    assert max(late[5:]) > 1.0
    assert max(column(table, "scrape_duration_seconds", "vllm-1")) < 0.1
    assert all(
        up == (one < 10.0) for up, one in zip(column(table, "up", "vllm-0"), late, strict=True)
    )
