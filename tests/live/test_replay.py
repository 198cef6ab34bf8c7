"""A recorded stack sent to a running service, asked of its API and of the command line."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.service import QUICK, Service, living, run, until

pytestmark = pytest.mark.timeout(900)

CAPTURE = Path(__file__).parents[2] / "app" / "demo" / "vllm-0.32.0.tar.gz"
REQUESTS = 127

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with living(tmp_path_factory.mktemp("replayed") / "store", *QUICK) as service:
        sent = run("replay", CAPTURE, "--to", service.http)
        assert sent.returncode == 0, sent.stderr
        until(lambda: len(service.rows("/api/requests")) == REQUESTS)
        assert service.stop() == 0  # publishes every row
        service.start()
        yield service


def _told(service: Service, *command: object) -> Rows:
    """What a command prints as JSON about the service's store."""
    ended = run(*command, "--store", service.store, "--json")
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (["tails"], "tails"),
        (["tails", "--by", "model,replica"], "tails?by=model,replica"),
        (["hops"], "hops"),
        (["hops", "--slowest", "5%"], "hops?slowest=0.05"),
        (["requests"], "requests"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_command_line_and_the_api_agree(
    replayed: Service, command: list[str], path: str
) -> None:
    rows = replayed.rows(f"/api/{path}")
    assert rows and rows == _told(replayed, *command)


def test_every_request_of_the_recording_is_there_once(replayed: Service) -> None:
    rows = replayed.rows("/api/requests")
    assert len({row["request_id"] for row in rows}) == len(rows) == REQUESTS
    slowest = max(rows, key=lambda row: row["ttft_client_s"] or -math.inf)
    trace = replayed.get(f"/api/traces/{slowest['trace_id']}").json()
    assert [row["request_id"] for row in trace["requests"]] == [slowest["request_id"]]
    assert len(trace["spans"]) == slowest["spans"]


def test_the_balance_of_the_command_line_is_that_of_the_api(replayed: Service) -> None:
    assert _told(replayed, "balance") == replayed.rows("/api/balance")
