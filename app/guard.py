"""The gate in front of the web port, for everything an ASGI application serves."""

from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from tailburn.app.web_problems import problem
from tailburn.collector.doors.access import Gate, Refusal, Scope

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})  # probes carry no token; these tell no data
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """ASGI middleware: reading needs scope `read`, everything else `respond`.

    The tenant is left in `request.state.tenant`; as a middleware it can't be forgotten on a
    route. Refusals are 401 or 403 with problem details, as all errors are.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        reading = scope["type"] == "http" and scope["method"] in _READING
        client = scope.get("client")
        admitted = self._gate.admit(
            client[0] if client else None,
            scope["headers"],
            Scope.READ if reading else Scope.RESPOND,
        )
        if isinstance(admitted, Refusal):
            await _refuse(admitted, scope, receive, send)
            return
        scope.setdefault("state", {})["tenant"] = admitted
        await self._app(scope, receive, send)


def tenant_of(request: HTTPConnection) -> str:
    """FastAPI dependency: the tenant whose data this request may see."""
    tenant: str = request.state.tenant
    return tenant


def seen_tenant(request: HTTPConnection, gate: Gate) -> str | None:
    """The one tenant whose data this request may see; None for an admin, who sees all."""
    peer = request.client.host if request.client else None
    if isinstance(gate.admit(peer, request.headers.raw, Scope.ADMIN), Refusal):
        return tenant_of(request)
    return None


async def _refuse(refusal: Refusal, scope: AsgiScope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason[:120]})
        return
    headers = {} if refusal.known else {"www-authenticate": 'Bearer realm="tailburn"'}
    answer = problem(403 if refusal.known else 401, refusal.reason, headers)
    await answer(scope, receive, send)
