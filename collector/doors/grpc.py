"""OTLP over gRPC: `grpc.aio` with identity (de)serialisers in front of one `Accept`.

Calls are unary on the wire, but handled as streams of requests: so access is checked before
the message is read. gRPC's own decompression is off, since it unpacks to the message limit
before anybody can say no; gzip is unpacked here, in bounded steps.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn
from urllib.parse import unquote

import grpc
import grpc.aio

from tailburn.collector.accept import Accept, Accepted, Encoding, Signal
from tailburn.collector.doors.access import Gate, Headers, Refusal, Scope
from tailburn.collector.doors.clock import ReceiveClock, wall_clock
from tailburn.collector.doors.inflate import Inflater
from tailburn.collector.doors.limits import Body, Budget, Limits
from tailburn.collector.doors.status import (
    INTERNAL,
    SLOW,
    Problem,
    export_response,
    problem_of,
    refused,
    retry_info,
    status_of,
)
from tailburn.collector.doors.tally import Answer, Tally
from tailburn.collector.doors.tls import Tls, read_pem
from tailburn.collector.errors import BadBody, IngestError

log = logging.getLogger(__name__)

SERVICES: Final = {
    "opentelemetry.proto.collector.trace.v1.TraceService": Signal.TRACES,
    "opentelemetry.proto.collector.metrics.v1.MetricsService": Signal.METRICS,
}
READ_TICKET_BYTES: Final = 1 << 20  # charged to each call until its message's size is known
_SLACK_BYTES: Final = 1 << 20  # so that it is the door that tells a sender of the limit
_GZIP_MAGIC: Final = b"\x1f\x8b"  # field 3 of wire type 7: no protobuf message begins so
_IDENTITY_AND_GZIP: Final = 0b101  # bits of grpc_compression_algorithm
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}

OPTIONS: Final = (
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_AND_GZIP),
    ("grpc.so_reuseport", 0),  # a second service on the port must fail, not share it
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),  # else pinging clients get GOAWAY
    ("grpc.max_connection_age_ms", 30 * 60_000),  # so that load spreads after a scale-out
    ("grpc.max_connection_age_grace_ms", 60_000),
)


class GrpcDoor:
    """One server on one port."""

    def __init__(
        self,
        accept: Accept,
        gate: Gate,
        limits: Limits,
        *,
        tls: Tls | None = None,
        budget: Budget | None = None,
        clock: ReceiveClock = wall_clock,
        tally: Tally | None = None,
    ) -> None:
        """`budget` may be shared with the HTTP door, so that both together stay inside it."""
        self._accept = accept
        self._gate = gate
        self._limits = limits
        self._tls = tls
        self._budget = budget or Budget(limits.in_flight_bytes)
        self._clock = clock
        self._tally = tally or Tally()
        self._server: grpc.aio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which port 0 leaves to the system.

        Raises OSError where the address can't be had, TlsError for unusable files.
        """
        limit = ("grpc.max_receive_message_length", self._limits.body_bytes + _SLACK_BYTES)
        server = grpc.aio.server(options=(*OPTIONS, limit))
        server.add_generic_rpc_handlers(
            tuple(self._service(name, signal) for name, signal in SERVICES.items())
        )
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = self._bind(server, address)
        except RuntimeError as error:
            raise OSError(f"gRPC can't listen on {address}: {error}") from error
        await server.start()
        self._server = server
        return bound

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, let those in flight end, cancel what is left after `grace_s`."""
        if self._server is not None:
            await self._server.stop(grace_s)
            self._server = None

    def _bind(self, server: grpc.aio.Server, address: str) -> int:
        if self._tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, grpc_credentials(self._tls))

    def _service(self, name: str, signal: Signal) -> grpc.GenericRpcHandler:
        async def export(
            requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext
        ) -> bytes:
            result = await self._export(signal, requests, context)
            if isinstance(result, Problem):
                self._count(signal, result.reason)
                await _abort(context, result)
            self._count(signal, "partial" if result.rejected else "ok")
            return export_response(result, signal, Encoding.PROTOBUF)

        handler = grpc.stream_unary_rpc_method_handler(export)
        return grpc.method_handlers_generic_handler(name, {"Export": handler})

    async def _export(
        self, signal: Signal, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext
    ) -> Accepted | Problem:
        headers = _headers(context)
        body = Body(self._limits.body_bytes, self._budget)
        try:
            admitted = self._gate.admit(_peer(context), headers, Scope.INGEST, shows_host=False)
            if isinstance(admitted, Refusal):
                return refused(admitted)
            await self._read(requests, body)
            if not body.data:
                return Accepted()
            return await self._accept(
                signal, Encoding.PROTOBUF, body.data, admitted, self._clock(headers)
            )
        except asyncio.CancelledError:
            self._count(signal, "disconnected")
            raise
        except _Slow:
            return SLOW
        except IngestError as error:
            return problem_of(error)
        except Exception:
            log.exception("an Export of %s failed", signal)
            return INTERNAL
        finally:
            body.release()

    async def _read(self, requests: AsyncIterator[bytes], body: Body) -> None:
        """Read the one message and decompress it into `body`.

        Raises BadBody, TooLarge, Busy and _Slow.
        """
        with self._ticket():
            try:
                async with asyncio.timeout(self._limits.read_timeout_s):
                    message = await anext(requests, None)
            except TimeoutError as error:
                raise _Slow from error
        if message is None:
            raise BadBody("the call ended without a message")
        self._tally.wire_bytes["grpc"] += len(message)
        if message.startswith(_GZIP_MAGIC):
            inflater = Inflater(b"gzip")
            await inflater.feed(message, body)
            inflater.finish()
        else:
            body.append(message)
        self._tally.body_bytes["grpc"] += len(body.data)

    @contextmanager
    def _ticket(self) -> Iterator[None]:
        self._budget.take(READ_TICKET_BYTES)
        try:
            yield
        finally:
            self._budget.give(READ_TICKET_BYTES)

    def _count(self, signal: Signal, outcome: str) -> None:
        self._tally.answers[Answer("grpc", signal, outcome)] += 1


class _Slow(Exception):
    """The message did not arrive in time."""


def grpc_credentials(tls: Tls) -> grpc.ServerCredentials:
    """Raises TlsError where a file can't be read or used."""
    tls.check()
    return grpc.ssl_server_credentials(
        [(read_pem(tls.key), read_pem(tls.cert))],
        root_certificates=None if tls.client_ca is None else read_pem(tls.client_ca),
        require_client_auth=tls.client_ca is not None,
    )


async def _abort(context: grpc.aio.ServicerContext, problem: Problem) -> NoReturn:
    """End the call before any initial metadata: the answer is trailers only.

    Java's sender looks for the status there and nowhere else. RetryInfo goes under both
    keys: Python reads one, everybody else the other.
    """
    status = status_of(problem)
    trailers = [("grpc-status-details-bin", status.SerializeToString())]
    if problem.retry_after_s is not None:
        delay = retry_info(problem.retry_after_s)
        trailers.append(("google.rpc.retryinfo-bin", delay.SerializeToString()))
    await context.abort(_CODES[problem.code], status.message, tuple(trailers))
    raise AssertionError("abort returned")


def _headers(context: grpc.aio.ServicerContext) -> Headers:
    return [
        (key.encode(), value if isinstance(value, bytes) else value.encode())
        for key, value in context.invocation_metadata() or ()
    ]


def _peer(context: grpc.aio.ServicerContext) -> str | None:
    """The address in `ipv4:127.0.0.1:4711` or `ipv6:%5B::1%5D:4711`; None for others."""
    family, _, address = context.peer().partition(":")
    host = unquote(address).rpartition(":")[0].strip("[]")
    return host if family in ("ipv4", "ipv6") else None
