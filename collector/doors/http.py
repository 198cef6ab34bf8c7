"""OTLP over HTTP: a raw ASGI callable in front of the service's other pages.

The way of a request: path, method, access, content type, encoding, length; only then is the
body read, bounded while it is decompressed, and handed on. A request of one small chunk
costs one `Body`, one `bytearray` and no routing.
"""

import asyncio
import logging
from typing import Final, NamedTuple

from google.rpc import code_pb2
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from tailburn.collector.accept import Accept, Accepted, Encoding, Signal
from tailburn.collector.doors.access import Gate, Headers, Refusal, Scope
from tailburn.collector.doors.clock import ReceiveClock, wall_clock
from tailburn.collector.doors.inflate import STARTERS, Inflater
from tailburn.collector.doors.limits import Body, Budget, Limits
from tailburn.collector.doors.status import (
    INTERNAL,
    SLOW,
    Problem,
    export_response,
    problem_of,
    refused,
    retry_after_header,
    status_body,
)
from tailburn.collector.doors.tally import Answer, Tally
from tailburn.collector.errors import IngestError, TooLarge

log = logging.getLogger(__name__)

SIGNALS: Final = {"/v1/traces": Signal.TRACES, "/v1/metrics": Signal.METRICS}
MEDIA_TYPES: Final = {
    b"application/x-protobuf": Encoding.PROTOBUF,
    b"application/json": Encoding.JSON,
}
_CONTENT_TYPES: Final = {encoding: media for media, encoding in MEDIA_TYPES.items()}
_OWN_PREFIXES: Final = ("/v1/", "/v1development/")
_HINT: Final = "send traces to POST /v1/traces and metrics to POST /v1/metrics"


class _Head(NamedTuple):
    """What the door needs of a request's headers."""

    media_type: bytes  # without parameters, in lower case; empty: none
    content_encoding: bytes  # in lower case; empty: none
    length: bytes | None

    @classmethod
    def of(cls, headers: Headers) -> "_Head":
        media_type, encoding, length = b"", b"", None
        for name, value in headers:
            if name == b"content-type":
                media_type = value.partition(b";")[0].strip().lower()
            elif name == b"content-encoding":
                # Repeated fields are one list: a second coding must not hide behind the first.
                encoding = encoding + b"," + value if encoding else value
            elif name == b"content-length":
                length = value
        encoding = encoding.strip().lower()
        return cls(media_type, b"" if encoding == b"identity" else encoding, length)

    @property
    def answer_encoding(self) -> Encoding:
        """The request's own, or the nearest: whoever speaks of protobuf reads protobuf."""
        return Encoding.PROTOBUF if b"protobuf" in self.media_type else Encoding.JSON


class _Disconnected(Exception):
    """The sender went away in mid-body."""


class _Slow(Exception):
    """The body did not arrive in time."""


def otlp_front(
    accept: Accept,
    gate: Gate,
    limits: Limits,
    app: ASGIApp | None,
    *,
    budget: Budget | None = None,
    clock: ReceiveClock = wall_clock,
    tally: Tally | None = None,
) -> ASGIApp:
    """Take `/v1/*` and `POST /`, pass everything else to `app` (without one: 404).

    `budget` may be shared with the gRPC door, so that both together stay inside it.
    """
    budget = budget or Budget(limits.in_flight_bytes)
    return _HttpDoor(accept, gate, limits, app, budget, clock, tally or Tally())


class _HttpDoor:
    def __init__(
        self,
        accept: Accept,
        gate: Gate,
        limits: Limits,
        app: ASGIApp | None,
        budget: Budget,
        clock: ReceiveClock,
        tally: Tally,
    ) -> None:
        self._accept = accept
        self._gate = gate
        self._limits = limits
        self._app = app
        self._budget = budget
        self._clock = clock
        self._tally = tally

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        signal = SIGNALS.get(scope["path"]) if scope["type"] == "http" else None
        if signal is not None:
            await self._export(signal, scope, receive, send)
        elif scope["type"] == "http" and (self._app is None or _is_ours(scope)):
            encoding = _Head.of(scope["headers"]).answer_encoding
            await self._refuse(_not_found(scope["path"]), "none", encoding, send)
        elif self._app is not None:
            await self._app(scope, receive, send)

    async def _export(self, signal: Signal, scope: AsgiScope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        head = _Head.of(headers)
        body = Body(self._limits.body_bytes, self._budget)
        try:
            admitted = self._admit(scope, head)
            if isinstance(admitted, Problem):
                await self._refuse(admitted, signal, head.answer_encoding, send)
                return
            encoding = MEDIA_TYPES[head.media_type]
            await self._read(receive, head, body)
            accepted = Accepted()
            if body.data:
                accepted = await self._accept(
                    signal, encoding, body.data, admitted, self._clock(headers)
                )
        except _Disconnected:
            self._tally.answers[Answer("http", signal, "disconnected")] += 1
        except _Slow:
            await self._refuse(SLOW, signal, head.answer_encoding, send)
        except IngestError as error:
            await self._refuse(problem_of(error), signal, head.answer_encoding, send)
        except Exception:
            log.exception("a request to %s failed", scope["path"])
            await self._refuse(INTERNAL, signal, head.answer_encoding, send)
        else:
            await self._succeed(accepted, signal, encoding, send)
        finally:
            body.release()

    def _admit(self, scope: AsgiScope, head: _Head) -> str | Problem:
        """The tenant, or why the body isn't even read."""
        if scope["method"] != "POST":
            return Problem("method", code_pb2.UNIMPLEMENTED, 405, f"use POST: {_HINT}")
        client = scope.get("client")
        admitted = self._gate.admit(client[0] if client else None, scope["headers"], Scope.INGEST)
        if isinstance(admitted, Refusal):
            return refused(admitted)
        return _bad_head(head, self._limits.body_bytes) or admitted

    async def _read(self, receive: Receive, head: _Head, body: Body) -> None:
        """Read and decompress into `body`, all within the time allowed.

        Raises BadBody, TooLarge, Busy, _Slow and _Disconnected.
        """
        try:
            async with asyncio.timeout(self._limits.read_timeout_s):
                wire_bytes = await self._read_chunks(receive, head, body)
        except TimeoutError as error:
            raise _Slow from error
        self._tally.wire_bytes["http"] += wire_bytes
        self._tally.body_bytes["http"] += len(body.data)

    async def _read_chunks(self, receive: Receive, head: _Head, body: Body) -> int:
        """The length of what came over the wire, in bytes."""
        inflater = Inflater(head.content_encoding) if head.content_encoding else None
        wire_bytes = 0
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Disconnected
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            wire_bytes += len(chunk)
            if wire_bytes > self._limits.body_bytes:
                raise TooLarge(f"the body is over {self._limits.body_bytes} bytes")
            if inflater is None:
                body.append(chunk)
            else:
                await inflater.feed(chunk, body)
        if inflater is not None:
            inflater.finish()
        return wire_bytes

    async def _succeed(
        self, accepted: Accepted, signal: Signal, encoding: Encoding, send: Send
    ) -> None:
        outcome = "partial" if accepted.rejected else "ok"
        self._tally.answers[Answer("http", signal, outcome)] += 1
        await _send(send, 200, encoding, export_response(accepted, signal, encoding), [])

    async def _refuse(self, problem: Problem, signal: str, encoding: Encoding, send: Send) -> None:
        self._tally.answers[Answer("http", signal, problem.reason)] += 1
        body = status_body(problem, encoding)
        await _send(send, problem.http_status, encoding, body, _headers_of(problem))


def _is_ours(scope: AsgiScope) -> bool:
    """Paths an exporter sends to by a right or wrong configuration, and nobody else does."""
    path: str = scope["path"]
    return path.startswith(_OWN_PREFIXES) or (path == "/" and scope["method"] == "POST")


def _not_found(path: str) -> Problem:
    signal = path.rpartition("/")[2]
    if signal in ("logs", "profiles"):
        hint = f"{signal} are not taken here, only traces and metrics"
    else:
        hint = f"nothing at this path: {_HINT}"
    return Problem("path", code_pb2.NOT_FOUND, 404, hint)


def _bad_head(head: _Head, limit_bytes: int) -> Problem | None:
    if head.media_type not in MEDIA_TYPES:
        wanted = " or ".join(media.decode() for media in MEDIA_TYPES)
        given = head.media_type.decode("latin-1") or "none"
        message = f"Content-Type is {given}, want {wanted}"
        return Problem("media_type", code_pb2.INVALID_ARGUMENT, 415, message)
    if head.content_encoding and head.content_encoding not in STARTERS:
        given = head.content_encoding.decode("latin-1")
        message = f"Content-Encoding is {given}, want identity, gzip or zstd"
        return Problem("content_encoding", code_pb2.INVALID_ARGUMENT, 415, message)
    if head.length is None:
        return None
    if not head.length.isdigit():
        return Problem("bad_body", code_pb2.INVALID_ARGUMENT, 400, "Content-Length is no number")
    # Compared by digits first: a number of any length must not be worth converting.
    digits = head.length.lstrip(b"0")
    if len(digits) > 18 or int(digits or b"0") > limit_bytes:
        return problem_of(TooLarge(f"the body is over {limit_bytes} bytes"))
    return None


def _headers_of(problem: Problem) -> list[tuple[bytes, bytes]]:
    if problem.retry_after_s is not None:
        return [(b"retry-after", retry_after_header(problem.retry_after_s))]
    if problem is SLOW:
        return [(b"connection", b"close")]
    if problem.http_status == 401:
        return [(b"www-authenticate", b'Bearer realm="tailburn"')]
    if problem.http_status == 405:
        return [(b"allow", b"POST")]
    if problem.reason == "content_encoding":
        return [(b"accept-encoding", b"identity, gzip, zstd")]
    return []


async def _send(
    send: Send, status: int, encoding: Encoding, body: bytes, extra: list[tuple[bytes, bytes]]
) -> None:
    headers = [
        (b"content-type", _CONTENT_TYPES[encoding]),
        (b"content-length", b"%d" % len(body)),
        *extra,
    ]
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
