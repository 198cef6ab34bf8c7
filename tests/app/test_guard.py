"""The gate in front of the web port, on a FastAPI application."""

import asyncio
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI

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


def web(*issued: Issued) -> Guard:
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

    return Guard(app, Gate(Rows(*issued)))


def ask(
    app: Guard, method: str, path: str, issued: Issued | None = None, host: str = "localhost:9464"
) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 4711))
        headers = {} if issued is None else {"authorization": f"Bearer {issued.secret}"}
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(run())


READER = issue("reader", "acme", [Scope.READ], 11)
RESPONDER = issue("responder", "acme", [Scope.READ, Scope.RESPOND], 12)
SENDER = issue("sender", "acme", [Scope.INGEST], 13)


def test_without_tokens_the_pages_are_this_machines() -> None:
    assert ask(web(), "GET", "/metrics").json() == "default"
    rebound = ask(web(), "GET", "/metrics", host="rebound.example.org:9464")
    assert rebound.status_code == 403
    assert "Host must be localhost" in rebound.json()["detail"]


@pytest.mark.parametrize(
    ("issued", "read", "respond"), [(READER, 200, 403), (RESPONDER, 200, 200), (SENDER, 403, 403)]
)
def test_reading_and_responding_need_their_scopes(issued: Issued, read: int, respond: int) -> None:
    app = web(READER, RESPONDER, SENDER)

    assert ask(app, "GET", "/metrics", issued).status_code == read
    assert ask(app, "POST", "/api/silences", issued).status_code == respond


def test_the_tenant_is_the_tokens() -> None:
    assert ask(web(READER), "GET", "/metrics", READER).json() == "acme"


def test_a_missing_token_is_asked_for() -> None:
    answer = ask(web(READER), "GET", "/metrics")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="tailburn"'
    assert "a token is needed" in answer.json()["detail"]


def test_unknown_paths_tell_a_stranger_nothing() -> None:
    assert ask(web(READER), "GET", "/no/such/page").status_code == 401


def test_probes_need_no_token() -> None:
    assert ask(web(READER), "GET", "/healthz").json() == "ok"


def test_a_websocket_is_closed_before_it_is_accepted() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/live", "headers": [], "client": ("127.0.0.1", 4711)}
    asyncio.run(web(READER)(scope, receive, send))

    assert [(m["type"], m["code"]) for m in sent] == [("websocket.close", 1008)]
