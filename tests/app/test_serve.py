"""The service as a whole, in a process of its own."""

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tailburn.app.serve import Service, serve_until_told
from tailburn.app.settings import Settings
from tests.app.service import FREE_PORTS, Running, chat, refused, send, serving

pytestmark = pytest.mark.timeout(600)  # the first start on a machine compiles the hot path

_PATIENCE_S = 60


def until(true: Callable[[], bool]) -> None:
    """Wait for what the service does by itself; fails after `_PATIENCE_S`."""
    give_up_s = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < give_up_s, "it never came true"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = tmp_path_factory.mktemp("service") / "store"
    with serving(store, "--idle-close-s", "0.5", "--rootless-close-s", "0.5") as running:
        yield running


def test_a_call_that_comes_in_becomes_a_request_a_metric_and_a_line_of_the_balance(
    service: Running, need_program: Callable[[str], str]
) -> None:
    before = service.totals().get("stored", 0)
    assert send(service.addresses["OTLP/HTTP"], chat(1, time.time_ns())).status_code == 200
    until(lambda: bool(service.rows("/api/requests?model=tiny-llama")))
    (row,) = service.rows("/api/requests?model=tiny-llama")
    assert row["ttft_client_s"] == pytest.approx(0.25)
    assert row["e2e_client_s"] == pytest.approx(2.0)
    totals = service.totals()
    assert totals["stored"] == before + 1
    assert totals.pop("received") == sum(totals.values())
    metrics = service.get("/metrics").text
    assert 'tailburn_ttft_seconds_count{vantage="client"' in metrics
    checked = subprocess.run(
        [need_program("promtool"), "check", "metrics"], input=metrics, text=True,
        capture_output=True,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_probes_and_metrics_say_that_it_is_ready(service: Running) -> None:
    assert service.get("/readyz").text == "ready\n"
    assert service.get("/healthz").text == "ok\n"
    metrics = service.get("/metrics").text
    assert "tailburn_ready 1.0" in metrics and "tailburn_evaluation_behind 0.0" in metrics


def test_a_broken_body_is_refused_and_counted(service: Running) -> None:
    answer = httpx.post(
        service.addresses["OTLP/HTTP"] + "/v1/traces",
        content=b"\xff\xff",
        headers={"content-type": "application/x-protobuf"},
    )
    assert answer.status_code == 400
    assert 'outcome="bad_body"' in service.get("/metrics").text


def test_a_second_service_on_the_same_store_says_who_has_it(
    service: Running,
) -> None:
    code, said = refused("serve", "--store", service.store, *FREE_PORTS)
    assert code == 2
    assert f"is in use by process {service.process.pid}" in said.splitlines()[-1]


def test_what_was_acknowledged_survives_a_stop_and_is_counted_once(tmp_path: Path) -> None:
    store = tmp_path / "store"
    sent, start_ns = 25, time.time_ns()
    with serving(store) as running:
        for number in range(1, sent + 1):
            assert send(running.addresses["OTLP/HTTP"], chat(number, start_ns)).status_code == 200
        assert running.stop() == 0
    with serving(store, "--idle-close-s", "0.2", "--rootless-close-s", "0.2") as running:
        assert running.totals()["received"] == sent
        again = send(running.addresses["OTLP/HTTP"], chat(1, start_ns))
        assert again.status_code == 200
        until(lambda: running.totals()["open"] == 0)
        assert running.totals() | {"received": 26, "stored": 25, "duplicate": 1} == running.totals()
        until(lambda: len(running.rows("/api/requests")) == sent)
        assert running.stop() == 0


@pytest.mark.parametrize("name", ["http", "grpc", "web"])
def test_a_taken_port_is_said_in_one_line(tmp_path: Path, name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = refused(
            "serve", "--store", tmp_path / "s", *FREE_PORTS, f"--{name}-port", port
        )
    assert code == 2
    assert said == (
        f"tailburn: {name}_port {port} on 127.0.0.1 is taken: `tailburn doctor` says by whom\n"
    )
    assert not (tmp_path / "s").exists(), "nothing is touched before the ports are had"


def test_all_taken_ports_are_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flags = [word for name in ("http", "grpc", "web") for word in (f"--{name}-port", port)]
        code, said = refused("serve", "--store", tmp_path / "s", *flags)
    assert code == 2
    assert [line.split()[1] for line in said.splitlines()] == ["http_port", "grpc_port", "web_port"]


def test_tls_files_that_are_none_are_said(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("no certificate")
    flags = ["--tls-cert", tmp_path / "a.pem", "--tls-key", tmp_path / "a.pem"]
    code, said = refused("serve", "--store", tmp_path / "s", *FREE_PORTS, *flags)
    assert code == 2 and said.count("\n") == 1 and "a.pem" in said


def test_off_loopback_it_does_not_start_without_tokens_and_tls(tmp_path: Path) -> None:
    code, said = refused("serve", "--store", tmp_path / "s", *FREE_PORTS, "--host", "0.0.0.0")
    assert code == 2
    assert "off loopback tokens are needed" in said and "off loopback TLS is needed" in said


def test_it_does_not_trace_itself_to_itself(tmp_path: Path) -> None:
    flags = ["--grpc-port", "4317", "--trace-endpoint", "http://localhost:4317"]
    code, said = refused("serve", "--store", tmp_path / "s", *FREE_PORTS, *flags)
    assert code == 2 and "would trace its own tracing" in said


def test_bad_rules_keep_it_from_starting_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("rules:\n  - rule: x\n    role: nonsense\n")
    flags = ["--hops-files", tmp_path / "mine.yaml"]
    code, said = refused("serve", "--store", tmp_path / "s", *FREE_PORTS, *flags)
    assert code == 2 and f"{tmp_path}/mine.yaml:2" in said


def test_a_fault_in_an_slo_stops_the_start_before_anything_is_touched(tmp_path: Path) -> None:
    slo = tmp_path / "slo.yaml"
    slo.write_text("apiVersion: tailburn/v1\nkind: ServingSLO\nmetadata: {name: a}\nspec: {x: 1}\n")
    code, said = refused("serve", "--store", tmp_path / "store", "--slo", tmp_path)
    assert code == 2
    assert f"{slo}:4" in said
    assert not (tmp_path / "store").exists()


def test_what_runs_beside_the_service_ends_before_the_service_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A child of the demo that outlives it would write into folders that are gone."""
    ended: list[str] = []

    async def started(stack: AsyncExitStack) -> None:
        stack.callback(ended.append, "service")

    async def opened(settings: Settings, stack: AsyncExitStack) -> Any:
        return SimpleNamespace(start=started)

    async def beside(_: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            ended.append("beside")

    monkeypatch.setattr(Service, "open", opened)
    serve_until_told(replace(Settings(), store=tmp_path), beside)
    assert ended == ["beside", "service"]
