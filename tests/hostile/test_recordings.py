"""Recordings that were damaged, made up or cut, and what `tailburn replay` says of them."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.app.conftest import Run
from tests.app.service import COMMAND, chat, environment, refused
from tests.app.test_serve import until

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles the hot path
HOUR_NS = 3_600_000_000_000
T0_NS = 1_780_000_000 * 10**9


def header(folder: Path, **fields: object) -> None:
    folder.mkdir()
    (folder / "00001-http.bin").write_bytes(chat(1, T0_NS).SerializeToString())
    (folder / "00001-http.json").write_text(json.dumps(fields))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "random bytes": (lambda p: p.write_bytes(bytes(range(200, 256)) * 9), "neither OTLP JSON nor"),
    "half a document": (lambda p: p.write_text('{"resourceSpans":'), "not OTLP JSON"),
    "brackets without end": (lambda p: p.write_text('{"a":' * 50_000), "not OTLP JSON"),
    "blank lines": (lambda p: p.write_text("\n\n"), "neither OTLP JSON nor"),
    "half a gzip": (lambda p: p.write_bytes(b"\x1f\x8b\x08"), "broken gzip"),
    "no zstd": (lambda p: p.write_bytes(b"\x28\xb5\x2f\xfd\xff\xff"), "broken zstd"),
    "half a zstd": (lambda p: p.write_bytes(zstandard.compress(b"{}" * 99)[:-4]), "broken zstd"),
    "an empty folder": (lambda p: p.mkdir(), "no recorded bodies and no OTLP files"),
    "a time of text": (lambda p: header(p, received_unix_ns="x"), "Expected `int`"),
    "a time before 1970": (lambda p: header(p, received_unix_ns=-1), ">= 0"),
    "a time after all times": (lambda p: header(p, received_unix_ns=10**20), "<= "),
    "a time where nanoseconds end": (lambda p: header(p, received_unix_ns=2**63 - 1), "<= "),
    "no time": (lambda p: header(p), "received_unix_ns"),
    "an unknown compression": (
        lambda p: header(p, received_unix_ns=T0_NS, content_encoding="lzma"),
        "unknown compression 'lzma'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_recording_is_said_in_one_line(run: Run, tmp_path: Path, case: str) -> None:
    make, said = BAD[case]
    path = tmp_path / "given"
    make(path)
    answer = run("replay", path, "--store", tmp_path / "store")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"tailburn: {path}") and answer.err.count("\n") == 1, answer.err
    assert said in answer.err


def test_an_archive_without_bodies_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "given.tar"
    path.write_bytes(bytes(10_240))
    answer = run("replay", path, "--store", tmp_path / "store")
    assert (answer.code, answer.err) == (2, f"tailburn: {path}: no recorded bodies in it\n")


@pytest.mark.parametrize("end_ns", [T0_NS + 900_000 * HOUR_NS, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("form", ["json", "pb"])
def test_one_span_of_another_century_costs_no_other(
    run: Run, tmp_path: Path, form: str, end_ns: int
) -> None:
    request = chat(1, T0_NS)
    for number in range(2, 6):
        request.MergeFrom(chat(number, T0_NS))
    request.resource_spans[2].scope_spans[0].spans[0].end_time_unix_nano = end_ns
    path = tmp_path / f"given.{form}"
    if form == "pb":
        path.write_bytes(request.SerializeToString())
    else:
        spans = [
            {
                "traceId": f"{number:032x}",
                "spanId": f"{number:016x}",
                "name": "chat m",
                "kind": 3,
                "startTimeUnixNano": str(T0_NS),
                "endTimeUnixNano": str(end_ns if number == 3 else T0_NS + 10**9),
                "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
            }
            for number in range(1, 6)
        ]
        path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    answer = run("replay", path, "--store", tmp_path / "store")
    assert answer.code == 0, answer.err
    rows = run("requests", "--store", tmp_path / "store", "--json").out.splitlines()
    assert len(rows) == 4
    (line,) = run("balance", "--store", tmp_path / "store", "--json").out.splitlines()[:1]
    assert json.loads(line)["quarantined"] == 1


def test_ctrl_c_ends_a_slow_replay_at_once_and_keeps_what_was_taken(tmp_path: Path) -> None:
    for number, received_ns in enumerate((T0_NS, T0_NS + 24 * HOUR_NS), 1):
        body = chat(number, T0_NS).SerializeToString()
        (tmp_path / f"{number}-http.bin").write_bytes(body)
        (tmp_path / f"{number}-http.json").write_text(json.dumps({"received_unix_ns": received_ns}))
    store = str(tmp_path / "store")
    arguments = [*COMMAND, "replay", str(tmp_path), "--speed", "1", "--store", store]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, env=environment()) as process:
        until(lambda: any((tmp_path / "store").rglob("*.log")) and _log_bytes(tmp_path) > 200)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    said = refused("balance", "--store", tmp_path / "store", "--json")
    assert said[0] == 0


def _log_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "store" / "log").glob("*.log"))
