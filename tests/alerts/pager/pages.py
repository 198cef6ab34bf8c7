"""Pages as tests send them, and a receiver that answers as it is told."""

import json
from collections.abc import Callable
from typing import Any

import httpx

from tailburn.alerts.pager.http import Poster
from tailburn.alerts.pager.page import Page
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity

S = 1_000_000_000


def page(what: What = What.TRIGGER, **more: Any) -> Page:
    fields: dict[str, Any] = {
        "key": "incident-key", "id": "message-id", "what": what, "severity": Severity.PAGE,
        "title": "chat burns 12x too fast", "text": "Since 03:00: ttft", "began_ns": 60 * S,
        "at_ns": 120 * S, "labels": {"slo": "chat", "model": "llama"},
        "links": {"incident": "http://t/incidents/1"},
    }  # fmt: skip
    return Page(**{**fields, **more})


class Receiver:
    """Keeps what it was posted."""

    def __init__(self, answer: Callable[[], httpx.Response] = lambda: httpx.Response(202)) -> None:
        self.posted: list[httpx.Request] = []
        self._answer = answer

    def poster(self, url: str = "https://hooks.example/services/secret-path") -> Poster:
        return Poster(url, httpx.MockTransport(self._handle))

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.posted]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.posted.append(request)
        return self._answer()
