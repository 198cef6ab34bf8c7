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
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(
            url.rstrip("/") + path,
            params=dict(parameters or {}),
            headers=headers,
            timeout=_TIMEOUT_S,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UserError(f"--url {url}: {error or type(error).__name__}") from None
    if not answer.is_success:
        raise UserError(f"--url {url}: {answer.status_code} {_detail(answer)}{_hint(answer)}")
    try:
        rows: list[dict[str, Any]] = answer.json()
    except ValueError:
        raise UserError(f"--url {url}: no web port of tailburn, it answers no JSON") from None
    return rows


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase


def _hint(answer: httpx.Response) -> str:
    if answer.status_code in (401, 403):
        return "; name a token of scope read with --token or TAILBURN_TOKEN"
    return ""
