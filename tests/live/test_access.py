"""TLS and tokens, as an exporter that was set up for them meets them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.live.service import QUICK, Service, run

pytestmark = pytest.mark.timeout(900)

_TRY_FOR_S = 3.0


@dataclass(frozen=True)
class Guarded:
    """A service behind TLS that wants a token, and what opens it."""

    service: Service
    authority: Path
    stranger: Path  # an authority that did not issue its certificate
    token: str


@pytest.fixture(autouse=True)
def only_these_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's exporter would trust those of the environment instead."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority, stranger = folder / "authority.pem", folder / "stranger.pem"
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    trustme.CA().cert_pem.write_to_path(str(stranger))
    leaf = issuer.issue_cert("localhost", "127.0.0.1")
    leaf.private_key_pem.write_to_path(str(folder / "key.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    added = run("token", "add", "app", "--scope", "ingest", "--store", folder / "store")
    assert added.returncode == 0, added.stderr
    flags = ("--tls-cert", folder / "cert.pem", "--tls-key", folder / "key.pem", *QUICK)
    service = Service(folder / "store", *flags, authority=authority)
    try:
        service.start()
        yield Guarded(service, authority, stranger, added.stdout.strip())
    finally:
        service.end()


def _exporter(transport: str, guarded: Guarded, authority: Path, token: str | None) -> SpanExporter:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if transport == "http":
        url = f"{guarded.service.http}/v1/traces"
        return OverHttp(url, certificate_file=str(authority), headers=headers, timeout=_TRY_FOR_S)
    credentials = grpc.ssl_channel_credentials(authority.read_bytes())
    url = f"https://{guarded.service.grpc}"
    return OverGrpc(url, credentials=credentials, headers=headers, timeout=_TRY_FOR_S)


def _export(exporter: SpanExporter) -> SpanExportResult:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with provider.get_tracer("app").start_as_current_span("chat"):
        pass
    result = exporter.export(kept.get_finished_spans())
    exporter.shutdown()
    return result


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_an_exporter_with_certificate_and_token_is_served(guarded: Guarded, transport: str) -> None:
    exporter = _exporter(transport, guarded, guarded.authority, guarded.token)
    assert _export(exporter) is SpanExportResult.SUCCESS


@pytest.mark.parametrize("transport", ["http", "grpc"])
@pytest.mark.parametrize("token", [None, "tb_not_a_token"], ids=["without a token", "with another"])
def test_an_exporter_without_its_token_is_refused(
    guarded: Guarded, transport: str, token: str | None
) -> None:
    exporter = _exporter(transport, guarded, guarded.authority, token)
    assert _export(exporter) is SpanExportResult.FAILURE


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_an_exporter_that_trusts_another_authority_sends_nothing(
    guarded: Guarded, transport: str
) -> None:
    exporter = _exporter(transport, guarded, guarded.stranger, guarded.token)
    assert _export(exporter) is SpanExportResult.FAILURE


def test_only_what_was_let_in_is_stored(guarded: Guarded) -> None:
    metrics = guarded.service.get("/metrics")
    assert metrics.status_code == 401, "the token is for sending only"
    assert guarded.service.stop() == 0
    told = run("balance", "--store", guarded.service.store, "--json")
    assert '"received":2,' in told.stdout.replace(" ", "")
