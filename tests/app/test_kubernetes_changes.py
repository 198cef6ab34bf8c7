"""Events asked of an API server that answers as Kubernetes does, noted once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tailburn.app.errors import UserError
from tailburn.app.kubernetes_changes import KubernetesWatch, watch_of
from tailburn.app.settings import Settings
from tailburn.collector.scrape.kubernetes import ApiServer, Asking
from tailburn.engine.store.state.changes import Changes
from tailburn.engine.store.state.database import open_state, state_path
from tests.collector.scrape.answers import client_of

Answer = Callable[[httpx.Request], httpx.Response]


def event(uid: str, name: str = "vllm-0", reason: str = "Killing") -> dict[str, Any]:
    return {
        "metadata": {"uid": uid}, "reason": reason, "firstTimestamp": "2026-12-03T03:00:00Z",
        "involvedObject": {"kind": "Pod", "namespace": "serving", "name": name},
    }  # fmt: skip


def listed(*events: dict[str, Any]) -> Answer:
    body = {"kind": "EventList", "metadata": {"continue": ""}, "items": list(events)}
    return lambda request: httpx.Response(200, json=body)


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    (tmp_path / "token").write_text("secret-token\n")
    return Changes(open_state(state_path(tmp_path)))


def look(
    changes: Changes, folder: Path, *answers: Answer, leads: Callable[[], bool] = lambda: True
) -> list[str]:
    """What the changes name after so many looks."""

    async def run() -> None:
        left = list(answers)
        async with client_of(lambda request: left[0](request)) as client:
            asking = Asking(ApiServer("https://10.96.0.1:443", folder), client, "serving")
            watch = KubernetesWatch(asking, "acme", changes, leads)
            while left:
                await watch.step()
                left.pop(0)

    asyncio.run(run())
    return [change.what for change in changes.all()]


def test_each_event_is_noted_once(changes: Changes, tmp_path: Path) -> None:
    first = listed(event("a"), event("p", reason="Pulled"))
    both = listed(event("a"), event("b", "vllm-1"))
    assert look(changes, tmp_path, first, both, both) == [
        "Pod serving/vllm-0", "Pod serving/vllm-1",
    ]  # fmt: skip
    assert len(look(changes, tmp_path, both)) == 2, "also after a restart"


def test_who_stands_by_notes_nothing(changes: Changes, tmp_path: Path) -> None:
    assert look(changes, tmp_path, listed(event("a")), leads=lambda: False) == []


def test_who_takes_over_notes_what_happened_while_nobody_did(
    changes: Changes, tmp_path: Path
) -> None:
    events = listed(event("a"))
    turns = iter([False, True])
    found = look(changes, tmp_path, events, events, leads=lambda: next(turns))
    assert found == ["Pod serving/vllm-0"]


def test_an_api_server_that_refuses_or_is_odd_is_said_and_asked_again(
    changes: Changes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"message": "forbidden"})

    def odd(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="<html>")

    found = look(changes, tmp_path, refuses, refuses, odd, listed(event("a")))
    assert found == ["Pod serving/vllm-0"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2 and "a role that may list events" in said[0]


def test_outside_a_cluster_it_says_so(changes: Changes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="changes_kubernetes: no pod"):
        watch_of(Settings(changes_kubernetes=True), changes, lambda: True, {}, tmp_path)
