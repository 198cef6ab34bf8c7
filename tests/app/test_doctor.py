"""What the doctor finds, and what it says to do."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailburn.collector.log import lock_store
from tests.app.conftest import Run
from tests.app.targets import answering, saved


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def findings(run: Run, *flags: object) -> dict[str, dict[str, Any]]:
    ports = ("--http-port", 0, "--grpc-port", 0, "--web-port", 0)
    answer = run("doctor", "--json", *ports, *flags)
    return {row["subject"]: row for row in map(json.loads, answer.out.splitlines())}


def test_a_taken_port_is_named_with_its_holder(run: Run, taken_port: int, tmp_path: Path) -> None:
    found = findings(run, "--store", tmp_path / "new", "--http-port", taken_port)
    port = found[f"http_port {taken_port}"]
    assert port["state"] == "warn"
    assert f"process {os.getpid()}" in port["seen"] and "set http_port" in port["todo"]
    assert found["web_port 0"]["state"] == "ok"


def test_a_port_of_the_service_on_this_store_is_as_it_should_be(
    run: Run, taken_port: int, tmp_path: Path
) -> None:
    lock = lock_store(tmp_path / "own", time.time_ns())
    found = findings(run, "--store", tmp_path / "own", "--http-port", taken_port)
    lock.release()
    port = found[f"http_port {taken_port}"]
    assert (port["state"], port["todo"]) == ("ok", "")
    assert f"process {os.getpid()}, started" in found["store lock"]["seen"]


def test_what_arrives_and_what_is_missing_is_said(run: Run, store: Path) -> None:
    found = findings(run, "--store", store)
    assert found["client clock"]["seen"] == "20 of 20 requests measured"
    engine = found["engine clock"]
    assert engine["state"] == "no data" and "--otlp-traces-endpoint" in engine["todo"]
    assert "llm_request" in found["recognised spans"]["seen"]
    assert found["complete requests"]["state"] == "ok"


def test_an_empty_store_is_no_data_and_not_well(run: Run, tmp_path: Path) -> None:
    found = findings(run, "--store", tmp_path / "new")
    assert found["requests"]["state"] == "no data" and "4318" not in found["requests"]["seen"]
    assert found["store lock"]["seen"] == "free"


def test_who_holds_the_store_is_said_without_taking_it(run: Run, store: Path) -> None:
    lock = store / "lock"
    lock.write_text('{"pid":4711,"started_ns":0}')
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "4711" in findings(run, "--store", store)["store lock"]["seen"]
    assert "no service runs" in findings(run, "--store", store)["store lock"]["seen"]


def test_a_readable_key_and_a_folder_out_of_reach_are_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    cert.touch()
    key.touch(mode=0o644)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = findings(run, "--store", tmp_path, "--tls-key", key, "--tls-cert", cert)
    assert found["tls_key"]["todo"] == f"chmod 600 {key}"
    assert found["store folder"]["state"] == "bad"


def test_one_bad_finding_makes_the_exit_code_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert run("doctor", "--store", tmp_path).code == 1


def test_the_clock_is_judged_one_way_or_the_other(run: Run, tmp_path: Path) -> None:
    clock = findings(run, "--store", tmp_path)["clock"]
    assert clock["state"] in ("ok", "warn", "no data") and clock["seen"]


def test_targets_are_told_by_what_they_do_not_tell(run: Run, tmp_path: Path) -> None:
    lines = saved("vllm-0.32.0").splitlines(keepends=True)
    half = b"".join(line for line in lines if b"kv_cache_usage_perc" not in line)
    with answering(saved("vllm-0.32.0")) as whole, answering(half) as blind:
        (tmp_path / "targets.yaml").write_text(f"- targets: ['{whole}', '{blind}', '127.0.0.1:1']")
        told = run("doctor", "--targets-files", "targets.yaml", "--json")
    rows = [json.loads(line) for line in told.out.splitlines()]
    found = {row["subject"]: row for row in rows if row["subject"].startswith("target")}
    assert found["targets"]["seen"] == "1 of 3 tell all that the walk needs"
    assert found[f"target {blind}"]["seen"] == "does not tell kv_usage_ratio"
    assert found["target 127.0.0.1:1"]["state"] == "bad"
    assert told.code == 1


def test_settings_of_targets_that_stop_the_start_are_told(run: Run) -> None:
    told = run("doctor", "--targets-files", "none.yaml", "--json")
    rows = [json.loads(line) for line in told.out.splitlines()]
    (target,) = (row for row in rows if row["subject"] == "targets")
    assert target["state"] == "bad"
    assert target["seen"].startswith("none.yaml:1: file: can't be read")
