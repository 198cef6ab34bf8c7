"""Recordings taken straight into a store."""

import json
from pathlib import Path
from typing import Any

import pytest

from tailburn.engine.names import FATES
from tests.app.conftest import Run
from tests.app.service import chat

CAPTURE = Path(__file__).resolve().parents[3] / "app" / "demo" / "vllm-0.32.0.tar.gz"
OF_THE_RUN = {"version", "received_ns"}

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles the hot path


def rows(run: Run, command: str, store: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(command, "--store", store, "--json").out.splitlines()]


@pytest.fixture
def replayed(run: Run, tmp_path: Path) -> Path:
    store = tmp_path / "replayed"
    answer = run("replay", CAPTURE, "--store", store)
    assert (answer.code, answer.out) == (0, "")
    assert "54 bodies, 2.5 MB" in answer.err
    return store


def test_the_shipped_capture_becomes_its_requests_and_a_second_replay_changes_nothing(
    run: Run, replayed: Path
) -> None:
    first = rows(run, "requests", replayed)
    assert len(first) == 127
    run("replay", CAPTURE, "--store", replayed)
    second = rows(run, "requests", replayed)
    strip = [{k: v for k, v in row.items() if k not in OF_THE_RUN} for row in first]
    assert [{k: v for k, v in row.items() if k not in OF_THE_RUN} for row in second] == strip
    for line in rows(run, "balance", replayed):
        assert line["received"] == sum(line[fate] for fate in FATES)
        assert line["open"] == 0


def test_a_body_that_is_none_is_named_and_the_rest_is_taken(run: Run, tmp_path: Path) -> None:
    bodies = [chat(1, 10**18).SerializeToString(), b"\xff\xff", chat(2, 10**18).SerializeToString()]
    for number, body in enumerate(bodies):
        (tmp_path / f"{number}-http.bin").write_bytes(body)
        (tmp_path / f"{number}-http.json").write_text(
            json.dumps({"received_unix_ns": 10**18 + 5 * 10**9})
        )
    answer = run("replay", tmp_path, "--store", tmp_path / "store")
    assert answer.code == 1
    assert f"{tmp_path}/1-http.bin: " in answer.err and "2 bodies" in answer.err
    assert len(rows(run, "requests", tmp_path / "store")) == 2
