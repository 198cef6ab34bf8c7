"""No text of a user is at rest, whichever door it came in by."""

import gzip
from pathlib import Path

import pytest

from bench.captures.planted import PLANTED
from tests.collector.otlp.as_json import as_json
from tests.live.secrets import MODEL, planted
from tests.live.service import QUICK, Service, living, run, until
from tests.live.stored import span_ids
from tests.live.texts import files_with

pytestmark = pytest.mark.timeout(900)


def _send_everywhere(service: Service) -> None:
    """The planted call by every door, with keys in the headers too."""
    body = planted(1).SerializeToString()
    keys = {"authorization": "Bearer zzplanted", "cookie": "a=zzplanted", "user_agent": "zzplanted"}
    answers = [
        service.post(body, **keys),
        service.post(gzip.compress(planted(2).SerializeToString()), content_encoding="gzip"),
        service.post(as_json(planted(3)), content_type="application/json"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    with service.export() as export:
        export(planted(4).SerializeToString(), metadata=[("x-api-key", "zzplanted")])


def test_planted_secrets_are_in_no_file_of_the_store(tmp_path: Path) -> None:
    with living(tmp_path / "store", "--idle-close-s", "8") as service:
        _send_everywhere(service)
        until(lambda: service.totals()["received"] == 4)
        assert service.stop() == 0
        open_in = files_with(service.store, MODEL)
        assert any("snapshot" in name for name in open_in) and "log" in open_in
        assert files_with(service.store, "zzplanted") == []
    with living(tmp_path / "store", *QUICK) as service:
        until(lambda: len(service.rows(f"/api/requests?model={MODEL}")) == 4)
        until(lambda: bool(service.rows(f"/api/tails?model={MODEL}")))
        service.kill()
        assert span_ids(service.store, "planted").total() == 4
        tables = {name.split("/")[0] for name in files_with(service.store, MODEL)}
        assert {"spans", "requests", "rollups"} <= tables
        assert files_with(service.store, "zzplanted") == []
        assert "zzplanted" not in service.said


def test_prompts_and_people_of_a_recorded_stack_are_in_no_file_of_the_store(
    shared_dir: Path, tmp_path: Path
) -> None:
    folder = shared_dir / "captures" / "litellm-vllm" / "spans"
    if not folder.is_dir():
        pytest.skip(f"no capture in {folder}")
    with living(tmp_path / "store", *QUICK) as service:
        sent = run("replay", folder, "--to", service.http)
        assert sent.returncode == 0, sent.stderr
        until(lambda: bool(service.rows("/api/requests?where=service=litellm-proxy")))
        assert service.stop() == 0
        shown = {name.split("/")[0] for name in files_with(service.store, "litellm")}
        assert {"log", "spans", "requests"} <= shown
        found = {marker: files_with(service.store, marker) for marker in PLANTED}
        assert found == {marker: [] for marker in PLANTED}
