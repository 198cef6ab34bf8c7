"""The service's own traces go elsewhere, and never to itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.errors import UserError
from tailburn.app.selftrace import SelfTrace


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """An OTLP/HTTP collector that keeps the bodies it is sent."""
    bodies: list[bytes] = []

    class Keep(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Keep) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


def test_spans_reach_the_chosen_collector_when_the_service_ends() -> None:
    with collector() as (address, bodies):
        tracing = SelfTrace(address, own_ports=[4318], own_host="127.0.0.1")
        with tracing.tracer("test").start_as_current_span("accept"):
            pass
        tracing.close()
    resource = ExportTraceServiceRequest.FromString(bodies[0]).resource_spans[0]
    assert resource.scope_spans[0].spans[0].name == "accept"
    service = {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"]
    assert service == "tailburn"


def test_without_an_endpoint_nothing_is_recorded() -> None:
    tracing = SelfTrace(None, own_ports=[], own_host="127.0.0.1")
    with tracing.tracer("test").start_as_current_span("accept") as span:
        assert not span.is_recording()
    assert not tracing.is_on
    tracing.close()


@pytest.mark.parametrize(
    ("endpoint", "own_host"),
    [
        ("http://127.0.0.1:4318", "127.0.0.1"),
        ("http://localhost:4318/", "0.0.0.0"),
        ("http://[::1]:4318", "::"),
        ("http://10.0.0.7:4318", "10.0.0.7"),
        ("http://0.0.0.0:4318", "127.0.0.1"),
    ],
)
def test_an_endpoint_that_is_the_service_itself_is_refused(endpoint: str, own_host: str) -> None:
    with pytest.raises(UserError, match="is a port of this service"):
        SelfTrace(endpoint, own_ports=[4317, 4318], own_host=own_host)


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://x", "http://", "http://x:y"])
def test_what_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(UserError, match="want http://host:port"):
        SelfTrace(endpoint, own_ports=[], own_host="127.0.0.1")


def test_the_same_port_of_another_host_is_taken() -> None:
    SelfTrace("http://10.0.0.7:4318", own_ports=[4318], own_host="10.0.0.8").close()
