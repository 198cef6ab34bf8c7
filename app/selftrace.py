"""The service traces its own work to another collector, never to itself."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider, Tracer

from tailburn.app.errors import UserError

SERVICE_NAME = "tailburn"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_EVERYWHERE = {"0.0.0.0", "::", ""}


class SelfTrace:
    """Hands out tracers; `close` sends what is left."""

    def __init__(self, endpoint: str | None, own_ports: Iterable[int], own_host: str) -> None:
        """Without an endpoint nothing is recorded.

        Raises UserError for an endpoint that is no HTTP address or is one of our own ports:
        each export would be traced and exported in turn, without end.
        """
        self._provider: TracerProvider | None = None
        if endpoint is None:
            return
        _check(endpoint, set(own_ports), own_host)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=Resource.create({"service.name": SERVICE_NAME}))
        address = endpoint.rstrip("/") + "/v1/traces"
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
        self._provider = provider

    @property
    def is_on(self) -> bool:
        return self._provider is not None

    def tracer(self, name: str) -> Tracer:
        """A tracer for one part of the service; it records nothing without an endpoint."""
        return (self._provider or NoOpTracerProvider()).get_tracer(name)

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()


def _check(endpoint: str, own_ports: set[int], own_host: str) -> None:
    parts = urlsplit(endpoint)
    try:
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        port = None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port is None:
        raise UserError(f"trace_endpoint {endpoint!r}: want http://host:port or https://host:port")
    if port in own_ports and _is_own(parts.hostname, own_host):
        raise UserError(
            f"trace_endpoint {endpoint!r} is a port of this service: it would trace its own "
            "tracing without end; name another collector"
        )


def _is_own(host: str, own_host: str) -> bool:
    """Whether a name could lead back to this service."""
    if host == own_host or host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return _resolves_here(host)
    return address.is_loopback or address.is_unspecified or own_host in _EVERYWHERE


def _resolves_here(host: str) -> bool:
    import socket

    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        mine = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return False
    return bool(found & mine) or any(ip_address(a.split("%")[0]).is_loopback for a in found)
