"""Talking to a receiver: bounded in time and in what is read, and an error that tells no secret."""

import email.utils
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from tailburn.alerts.pager.page import DeliveryError
from tailburn.alerts.pager.text import clean

TIMEOUT_S: Final = 5.0
MOST_ANSWER_BYTES: Final = 65_536
MOST_READ_BYTES: Final = 16 << 20
_HEADERS: Final = {"content-type": "application/json", "accept-encoding": "identity"}
_TRY_AGAIN: Final = frozenset({408, 425, 429})


class Poster:
    """Posts JSON to one address, of which errors name the host alone: its path may be a secret."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises ValueError for what is no http address."""
        self._url, self.host = _parsed(url)
        self._client = httpx.Client(timeout=TIMEOUT_S, transport=transport)

    def post(self, body: Any, headers: dict[str, str] | None = None) -> None:
        """Returns once it is answered with 2xx. Raises DeliveryError."""
        try:
            with self._client.stream(
                "POST", self._url, content=json.dumps(body).encode(),
                headers={**_HEADERS, **(headers or {})},
            ) as answer:  # fmt: skip
                said = _head(answer)
                if not answer.is_success:
                    raise _refused(self.host, answer, said)
        except httpx.HTTPError as error:
            raise _lost(self.host, error) from None

    def close(self) -> None:
        self._client.close()


class Api:
    """Asks and tells an API below one address, in JSON."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        """Raises ValueError for what is no http address."""
        self._url, self.host = _parsed(url)
        self._client = httpx.Client(timeout=TIMEOUT_S, transport=transport)

    def get(self, path: str, **parameters: str) -> Any:
        """What it answers. Raises DeliveryError, also for what is no JSON, or too long."""
        return self._asked("GET", path, parameters)

    def post(self, path: str, body: Any) -> Any:
        """What it answers. Raises DeliveryError."""
        return self._asked("POST", path, {}, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        """Raises DeliveryError."""
        self._asked("DELETE", path, {})

    def close(self) -> None:
        self._client.close()

    def _asked(
        self, method: str, path: str, parameters: Mapping[str, str], content: bytes | None = None
    ) -> Any:
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        try:
            with self._client.stream(
                method, url, params=parameters, content=content, headers=_HEADERS
            ) as answer:
                if not answer.is_success:
                    raise _refused(self.host, answer, _head(answer))
                return self._read(answer)
        except httpx.HTTPError as error:
            raise _lost(self.host, error) from None

    def _read(self, answer: httpx.Response) -> Any:
        read, until_s = bytearray(), time.monotonic() + TIMEOUT_S
        for piece in answer.iter_bytes(65_536):
            read += piece
            if len(read) > MOST_READ_BYTES or time.monotonic() > until_s:
                raise DeliveryError(f"{self.host}: its answer is too long, or takes too long")
        try:
            return json.loads(read) if read else None
        except ValueError:
            raise DeliveryError(f"{self.host}: its answer is no JSON") from None


def _parsed(url: str) -> tuple[httpx.URL, str]:
    """An address, and as messages name it. Raises ValueError."""
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("want an address that begins with http:// or https://")
    return parsed, f"{parsed.scheme}://{parsed.netloc.decode().rpartition('@')[2]}"


def _lost(host: str, error: httpx.HTTPError) -> DeliveryError:
    what = type(error).__name__ if isinstance(error, httpx.TimeoutException) else error
    return DeliveryError(f"{host}: {clean(str(what), 200)}")


def _head(answer: httpx.Response) -> str:
    """The first characters of an answer, of which no more is read than so much, and so long."""
    read, until_s = b"", time.monotonic() + TIMEOUT_S
    for piece in answer.iter_bytes(4_096):
        read += piece
        if len(read) >= MOST_ANSWER_BYTES or time.monotonic() > until_s:
            break
    return clean(read[:1_000].decode(errors="replace"), 200)


def _refused(host: str, answer: httpx.Response, said: str) -> DeliveryError:
    code = answer.status_code
    return DeliveryError(
        f"{host}: {code} {said}".rstrip(),
        is_permanent=code < 500 and code not in _TRY_AGAIN,
        retry_after_s=_retry_after_s(answer.headers.get("retry-after")),
    )


def _retry_after_s(told: str | None) -> float | None:
    """Seconds, or a date (RFC 9110, 10.2.3); None for what is neither."""
    if told is None:
        return None
    if told.strip().isdigit():
        return float(told)
    try:
        at = email.utils.parsedate_to_datetime(told)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)
