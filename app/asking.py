"""What a running service is asked over HTTP by commands."""

from collections.abc import Mapping
from typing import Any, Final

import httpx

from tailburn.app.errors import UserError

_TIMEOUT_S: Final = 30.0


def ask(
    url: str,
    path: str,
    token: str | None,
    parameters: Mapping[str, str | list[str]] | None = None,
) -> list[dict[str, Any]]:
    """The rows that `path` of the web port at `url` answers with. Raises UserError."""
    rows: list[dict[str, Any]] = _answer("GET", url, path, token, params=dict(parameters or {}))
    return rows


def ask_one(url: str, path: str, token: str | None) -> dict[str, Any]:
    """The one thing that `path` answers with. Raises UserError."""
    row: dict[str, Any] = _answer("GET", url, path, token)
    return row


def tell(url: str, path: str, token: str | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """Have the service do something; what it answers. Raises UserError."""
    row: dict[str, Any] = _answer("POST", url, path, token, json=dict(body))
    return row


def _answer(method: str, url: str, path: str, token: str | None, **sent: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    address = url.rstrip("/") + path
    try:
        answer = httpx.request(method, address, headers=headers, timeout=_TIMEOUT_S, **sent)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UserError(f"--url {url}: {error or type(error).__name__}") from None
    if not answer.is_success:
        hint = _hint(answer, "read" if method == "GET" else "respond")
        raise UserError(f"--url {url}: {answer.status_code} {_detail(answer)}{hint}")
    try:
        return answer.json()
    except ValueError:
        raise UserError(f"--url {url}: no web port of tailburn, it answers no JSON") from None


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def _hint(answer: httpx.Response, scope: str) -> str:
    if answer.status_code in (401, 403):
        return f"; name a token of scope {scope} with --token or TAILBURN_TOKEN"
    return ""
