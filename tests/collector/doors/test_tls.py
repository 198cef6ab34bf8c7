"""TLS and mutual TLS on both doors, and files that can't be used."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import httpx
import pytest
import trustme

from tailburn.collector.doors.grpc import GrpcDoor
from tailburn.collector.doors.http import otlp_front
from tailburn.collector.doors.limits import Limits
from tailburn.collector.doors.tls import Tls, TlsError
from tests.collector.doors.support import (
    PROTOBUF,
    FakeGate,
    Recorder,
    grpc_server,
    http_server,
    traces,
)

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@dataclass(frozen=True)
class Files:
    """PEM files of one authority, its server, its client, and of a client from elsewhere."""

    authority: Path
    server: Tls
    client: Tls
    foreign: Tls

    @property
    def mutual(self) -> Tls:
        return Tls(self.server.cert, self.server.key, self.authority)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    authority, elsewhere = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))

    def write(name: str, cert: trustme.LeafCert) -> Tls:
        tls = Tls(folder / f"{name}.pem", folder / f"{name}.key")
        tls.cert.write_bytes(b"".join(pem.bytes() for pem in cert.cert_chain_pems))
        cert.private_key_pem.write_to_path(str(tls.key))
        return tls

    return Files(
        folder / "authority.pem",
        write("server", authority.issue_cert("127.0.0.1", "localhost")),
        write("client", authority.issue_cert("client@example.org")),
        write("foreign", elsewhere.issue_cert("client@example.org")),
    )


async def by_http(port: int, files: Files, client: Tls | None) -> None:
    context = ssl.create_default_context(cafile=files.authority)
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    async with httpx.AsyncClient(verify=context) as http:
        response = await http.post(
            f"https://127.0.0.1:{port}/v1/traces",
            content=traces("sealed"),
            headers={"content-type": PROTOBUF},
        )
        assert response.status_code == 200


async def by_grpc(port: int, files: Files, client: Tls | None) -> None:
    credentials = grpc.ssl_channel_credentials(
        files.authority.read_bytes(),
        client and client.key.read_bytes(),
        client and client.cert.read_bytes(),
    )
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        assert await channel.unary_unary(TRACES)(traces("sealed"), timeout=20) == b""


def serve(tls: Tls, talk: Callable[[int, int], Awaitable[None]]) -> list[str]:
    """Both doors with the same files; the names of the spans that came through."""
    accept = Recorder()

    async def run() -> None:
        door = GrpcDoor(accept, FakeGate(), Limits(), tls=tls)
        front = otlp_front(accept, FakeGate(), Limits(), None)
        async with http_server(front, tls) as http_port, grpc_server(door) as grpc_port:
            await talk(http_port, grpc_port)

    asyncio.run(run())
    return accept.span_names


def test_both_doors_speak_tls(files: Files) -> None:
    async def talk(http_port: int, grpc_port: int) -> None:
        await by_http(http_port, files, None)
        await by_grpc(grpc_port, files, None)

    assert serve(files.server, talk) == ["sealed", "sealed"]


def test_with_tls_nothing_is_taken_in_the_clear(files: Files) -> None:
    async def talk(http_port: int, grpc_port: int) -> None:
        async with httpx.AsyncClient() as http:
            with pytest.raises(httpx.TransportError):
                await http.post(f"http://127.0.0.1:{http_port}/v1/traces", content=b"x")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(TRACES)(b"x", timeout=20)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    assert serve(files.server, talk) == []


def test_mutual_tls_takes_the_authoritys_own_clients_only(files: Files) -> None:
    async def talk(http_port: int, grpc_port: int) -> None:
        await by_http(http_port, files, files.client)
        await by_grpc(grpc_port, files, files.client)
        for stranger in (None, files.foreign):
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                await by_http(http_port, files, stranger)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await by_grpc(grpc_port, files, stranger)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    assert serve(files.mutual, talk) == ["sealed", "sealed"]


def test_good_files_pass_the_check(files: Files) -> None:
    files.server.check()
    files.mutual.check()


def test_bad_files_are_named_before_the_start(files: Files, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    missing = tmp_path / "missing.pem"

    with pytest.raises(TlsError, match="missing.pem can't be read: No such file"):
        Tls(missing, files.server.key).check()
    with pytest.raises(TlsError, match=r"server.pem and .*client.key are no pair"):
        Tls(files.server.cert, files.client.key).check()
    with pytest.raises(TlsError, match="empty.pem holds no certificate"):
        Tls(files.server.cert, files.server.key, empty).check()
    with pytest.raises(TlsError, match="missing.pem"):
        asyncio.run(
            GrpcDoor(Recorder(), FakeGate(), Limits(), tls=Tls(missing, files.server.key)).start(
                "127.0.0.1", 0
            )
        )
