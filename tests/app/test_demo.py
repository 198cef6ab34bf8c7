"""`tailburn demo`, which is what `make run` runs."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.demo import shown
from tailburn.app.demo.captured import until_closed
from tailburn.collector.log import lock_store
from tests.app.service import COMMAND, environment, refused


def _shown(*arguments: object) -> str:
    """What a demo says until it has said all, and is ended."""
    ports = {f"TAILBURN_{name}_PORT": "0" for name in ("HTTP", "GRPC", "WEB")}
    process = subprocess.Popen(
        [*COMMAND, "demo", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment() | ports,
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Your own services" in line:
            break
    os.kill(process.pid, signal.SIGTERM)
    said.append(process.stdout.read())
    shown = "".join(said)
    assert process.wait(60) == 0, shown
    return shown


@pytest.mark.timeout(600)
def test_the_capture_says_which_hop_owns_the_slow_requests_and_goes_on_serving(
    tmp_path: Path,
) -> None:
    shown = _shown("--capture", "--store", tmp_path / "demo")
    assert "54 bodies became 127 requests." in shown, shown
    assert "gateway>engine owns the excess. Look next:" in shown


@pytest.mark.timeout(600)
def test_a_fleet_lives_through_its_story_and_goes_on(tmp_path: Path) -> None:
    shown = _shown("--no-recorded", "--hours", "0.5", "--store", tmp_path / "demo")
    assert "gateway owns the excess. Look next: the gateway:" in shown, shown
    assert "FIRES" in shown
    assert "Alerts that fire" in shown and "TailburnBudgetBurn" in shown
    assert "S23, gateway buffering (strong; gateway gateway-1); it shows in gateway." in shown
    assert "tailburn lab explain S23" in shown
    truth = json.loads((tmp_path / "demo-truth" / "truth.json").read_text())
    assert [told["scenario"] for told in truth["truths"]] == ["S23"]


@pytest.mark.timeout(600)
def test_a_fault_of_the_kv_cache_pages_and_is_told_as_data() -> None:
    """What is said, beside what is true: the queue is but the symptom of a full cache."""
    found = shown("S14", hours=0.5, severity="strong")
    assert found.is_whole
    assert "TailburnBudgetBurn" in found.pages
    (owner,), (truth,) = found.of("owner"), found.of("truth")
    assert (owner["slo"], owner["objective"], owner["hop"]) == ("chat", "ttft_p95", "queue")
    assert (truth["hop"], truth["verdict"]) == ("queue", "KV (capacity)")


def test_an_unknown_fault_is_answered_with_the_nearest(tmp_path: Path) -> None:
    code, said = refused("demo", "--fault", "gateway-bufering", "--store", tmp_path / "demo")
    assert code == 2
    assert "did you mean gateway-buffering" in said


def test_a_store_that_is_in_use_is_not_mixed_with_the_demo(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    ended = subprocess.run(
        [*COMMAND, "demo", "--store", tmp_path], capture_output=True, text=True, env=environment()
    )
    assert ended.returncode == 2
    assert "the demo wants an empty store" in ended.stderr


def test_afresh_deletes_no_store_in_use_and_no_foreign_folder(tmp_path: Path) -> None:
    used, foreign = tmp_path / "used", tmp_path / "foreign"
    lock = lock_store(used, 1)
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    try:
        for folder, said in ((used, "is in use by process"), (foreign, "name an empty folder")):
            ended = subprocess.run(
                [*COMMAND, "demo", "--store", folder, "--afresh"],
                capture_output=True, text=True, env=environment(),
            )  # fmt: skip
            assert ended.returncode == 2
            assert said in ended.stderr
        assert (used / "lock").exists()
        assert (foreign / "notes.txt").read_text() == "mine"
    finally:
        lock.release()


def test_the_service_is_not_held_up_while_the_demo_waits_for_its_rows() -> None:
    asked_in = []

    def is_busy() -> bool:
        asked_in.append(threading.current_thread())
        return len(asked_in) < 2

    service: Any = SimpleNamespace(collecting=SimpleNamespace(is_busy=is_busy))
    asyncio.run(until_closed(service))
    assert len(asked_in) == 2
    assert threading.current_thread() not in asked_in
