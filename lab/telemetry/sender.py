"""Bodies over OTLP/HTTP: kept-alive connections, retries, and a count of what was refused.

Each body carries the instant at which it would arrive, in the header that `tailburn serve
--clock telemetry` (and only that) takes for its receive time. A target that refuses or is not
there is asked again; what it refuses for good is counted, never dropped in silence.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Self

import httpx

RECEIVED_HEADER: Final = "x-tailburn-received-unix-ns"
RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""Of the statuses of errors, those that OTLP asks to try again."""


@dataclass
class Sent:
    """What became of the bodies so far."""

    bodies: int = 0
    bytes: int = 0
    retries: int = 0
    refused_bodies: int = 0
    """Not taken, after all tries or for good."""
    rejected_spans: int = 0
    """Within bodies that were taken, as the answers say (partial success)."""
    last_error: str = ""


@dataclass(frozen=True)
class Patience:
    """How long a target that refuses is asked: waits double up to the longest."""

    tries: int = 8
    first_wait_s: float = 0.25
    longest_wait_s: float = 5.0

    def wait_s(self, tries: int, asked_s: float | None) -> float:
        """Before the next try, after so many; what the target asked for, if it did."""
        wait = min(self.first_wait_s * 2.0 ** (tries - 1), self.longest_wait_s)
        return min(asked_s, self.longest_wait_s) if asked_s is not None else wait


class Sender:
    """Sends to `url` (`http://host:4318`, or the whole path) until closed.

    `pace`: seconds of the run a second of the wall; None sends as fast as it is taken.
    """

    def __init__(
        self,
        url: str,
        *,
        epoch_unix_ns: int,
        token: str | None = None,
        pace: float | None = None,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sent = Sent()
        self._url = trace_url(url)
        self._epoch = epoch_unix_ns
        self._pace, self._sleep, self._clock = pace, sleep, clock
        self._patience = patience or Patience()
        self._began: tuple[float, int] | None = None
        headers = {"content-type": "application/x-protobuf"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers, timeout=httpx.Timeout(60.0, connect=5.0), transport=transport
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def send_all(self, bodies: Iterable[tuple[int, bytes]]) -> Sent:
        """Send (arrival_ns, body) in their order; the counts so far."""
        for arrival_ns, body in bodies:
            self.send(arrival_ns, body)
        return self.sent

    def send(self, arrival_ns: int, body: bytes) -> bool:
        """Send one body that arrives at an instant of the run; whether it was taken."""
        self._wait_for(arrival_ns)
        headers = {RECEIVED_HEADER: str(self._epoch + arrival_ns)}
        for tries in range(1, self._patience.tries + 1):
            asked_s: float | None = None
            try:
                answer = self._client.post(self._url, content=body, headers=headers)
            except httpx.TransportError as error:
                self.sent.last_error = f"{self._url}: {type(error).__name__}: {error}"
            else:
                if answer.is_success:
                    self.sent.bodies += 1
                    self.sent.bytes += len(body)
                    self.sent.rejected_spans += rejected_spans(answer.content)
                    return True
                self.sent.last_error = f"{self._url}: HTTP {answer.status_code}"
                if answer.status_code not in RETRYABLE:
                    break
                asked_s = _retry_after(answer)
            if tries < self._patience.tries:
                self.sent.retries += 1
                self._sleep(self._patience.wait_s(tries, asked_s))
        self.sent.refused_bodies += 1
        return False

    def _wait_for(self, arrival_ns: int) -> None:
        """Hold a body back until its instant, where the run has a pace."""
        if self._pace is None:
            return
        if self._began is None:
            self._began = self._clock(), arrival_ns
        wall, begun_ns = self._began
        early = (arrival_ns - begun_ns) / 1e9 / self._pace - (self._clock() - wall)
        if early > 0:
            self._sleep(early)


def trace_url(url: str) -> str:
    """Where traces go; raises ValueError for what is no HTTP address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"--to {url}: {error}; want http://host:port") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"--to {url}: want http://host:port or https://host:port")
    return str(parsed.copy_with(path="/v1/traces") if parsed.path in ("", "/") else parsed)


def _retry_after(answer: httpx.Response) -> float | None:
    told = answer.headers.get("retry-after", "")
    return float(told) if told.isdigit() else None


def rejected_spans(answer: bytes) -> int:
    """`partial_success.rejected_spans` of an ExportTraceServiceResponse; 0 where unreadable."""
    try:
        if not answer or answer[0] != 0x0A:
            return 0
        size, at = _varint(answer, 1)
        end = at + size
        while at < end:
            tag, at = _varint(answer, at)
            value, at = _varint(answer, at)
            if tag == 0x08:
                return value
            at += value  # the message: its length, then its text
    except IndexError:
        pass
    return 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
