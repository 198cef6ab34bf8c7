"""The gate in front of the web port, on a FastAPI application."""

from typing import Annotated

import pytest
from fastapi import Depends, FastAPI, WebSocket
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tailburn.app.access import Gate, Issued, issue
from tailburn.app.guard import Guard, tenant_of
from tailburn.collector.doors.access import Scope
from tailburn.engine.store.state.models import Token


class Rows:
    def __init__(self, *issued: Issued) -> None:
        self._rows = [i.token for i in issued]

    def all(self) -> list[Token]:
        return self._rows

    def mark_used(self, ids: object, now_ns: int) -> None:
        raise AssertionError("nobody asked")


def web(*issued: Issued, base_url: str = "http://localhost:9464") -> TestClient:
    app = FastAPI()

    @app.get("/metrics")
    def metrics(tenant: Annotated[str, Depends(tenant_of)]) -> str:
        return tenant

    @app.post("/api/silences")
    def silence(tenant: Annotated[str, Depends(tenant_of)]) -> str:
        return tenant

    @app.get("/healthz")
    def healthz() -> str:
        return "ok"

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    return TestClient(
        Guard(app, Gate(Rows(*issued))), base_url=base_url, client=("127.0.0.1", 4711)
    )


READER = issue("reader", "acme", [Scope.READ], 11)
RESPONDER = issue("responder", "acme", [Scope.READ, Scope.RESPOND], 12)
SENDER = issue("sender", "acme", [Scope.INGEST], 13)


def auth(issued: Issued) -> dict[str, str]:
    return {"authorization": f"Bearer {issued.secret}"}


def test_without_tokens_the_pages_are_this_machines() -> None:
    assert web().get("/metrics").json() == "default"
    rebound = web(base_url="http://rebound.example.org:9464").get("/metrics")
    assert rebound.status_code == 403
    assert "Host must be localhost" in rebound.json()["detail"]


@pytest.mark.parametrize(
    ("issued", "read", "respond"), [(READER, 200, 403), (RESPONDER, 200, 200), (SENDER, 403, 403)]
)
def test_reading_and_responding_need_their_scopes(issued: Issued, read: int, respond: int) -> None:
    client = web(READER, RESPONDER, SENDER)

    assert client.get("/metrics", headers=auth(issued)).status_code == read
    assert client.post("/api/silences", headers=auth(issued)).status_code == respond


def test_the_tenant_is_the_tokens() -> None:
    assert web(READER).get("/metrics", headers=auth(READER)).json() == "acme"


def test_a_missing_token_is_asked_for() -> None:
    answer = web(READER).get("/metrics")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="tailburn"'
    assert "a token is needed" in answer.json()["detail"]


def test_unknown_paths_tell_a_stranger_nothing() -> None:
    assert web(READER).get("/no/such/page").status_code == 401


def test_probes_need_no_token() -> None:
    assert web(READER).get("/healthz").json() == "ok"


def test_a_websocket_is_closed_in_the_strangers_face() -> None:
    with (
        pytest.raises(WebSocketDisconnect) as closed,
        web(READER).websocket_connect("/live") as socket,
    ):
        socket.receive_text()

    assert closed.value.code == 1008
