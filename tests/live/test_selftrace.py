"""The service's own spans go to another collector and never into itself."""

from pathlib import Path

import pytest

from tests.app.service import chat
from tests.live.service import QUICK, Service, living, run, until
from tests.live.stored import span_ids

pytestmark = pytest.mark.timeout(900)


def test_its_own_spans_go_elsewhere_and_not_into_itself(service: Service, tmp_path: Path) -> None:
    flags = (*QUICK, "--trace-endpoint", service.http)
    with living(tmp_path / "store", *flags) as traced:
        assert traced.post(chat(1, 1_800_000_000_000_000_000).SerializeToString()).is_success
        traced.settle(1)
        assert traced.stop() == 0  # which also sends what is left of its spans
        assert span_ids(traced.store).total() == 1
        assert span_ids(traced.store, "tailburn").total() == 0
    until(lambda: any('"tailburn"' in row["resource"] for row in service.rows("/api/balance")))


def test_it_does_not_start_where_it_would_trace_itself(tmp_path: Path) -> None:
    service = Service(tmp_path / "store")
    for own in (service.http, service.web, f"http://127.0.0.1:{service.grpc_port}"):
        ended = run("serve", *service.flags, "--trace-endpoint", own)
        assert ended.returncode == 2
        assert "would trace its own tracing" in ended.stderr


def test_an_address_meant_for_applications_does_not_make_it_trace(tmp_path: Path) -> None:
    service = Service(tmp_path / "store", *QUICK)
    everywhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": service.http, "OTEL_TRACES_EXPORTER": "otlp"}
    try:
        service.start(**everywhere)
        assert service.post(chat(1, 1_800_000_000_000_000_000).SerializeToString()).is_success
        service.settle(1)
        assert service.totals()["received"] == 1
        assert service.stop() == 0
    finally:
        service.end()
    assert span_ids(service.store, "tailburn").total() == 0
