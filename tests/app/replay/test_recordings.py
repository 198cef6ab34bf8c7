"""Recorded bodies and OTLP files, read in order of receive time."""

import gzip
import json
import struct
import tarfile
from pathlib import Path

import pytest
import zstandard
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tailburn.app.replay.paths import recordings
from tailburn.app.replay.recording import RecordingError
from tailburn.collector.accept import Encoding, Signal


def traces(end_ns: int) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes(range(16)), bytes(range(8))
    span.end_time_unix_nano = end_ns
    return request


def metrics(time_ns: int) -> bytes:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="vllm:running")
    metric.gauge.data_points.add(time_unix_nano=time_ns, as_int=7)
    return request.SerializeToString()


def json_line(end_ns: int) -> str:
    span = {"traceId": "0" * 31 + "1", "endTimeUnixNano": str(end_ns)}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


def record(folder: Path, number: int, received_ns: int, body: bytes, **header: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{number:05}-http.bin").write_bytes(body)
    (folder / f"{number:05}-http.json").write_text(
        json.dumps({"received_unix_ns": received_ns, "headers": {}, **header})
    )


def test_bodies_of_several_folders_come_in_order_of_receive_time(tmp_path: Path) -> None:
    record(tmp_path / "a", 1, 30, b"third")
    record(tmp_path / "a", 2, 10, b"first", content_type="application/json")
    record(tmp_path / "b", 1, 20, gzip.compress(b"second"), content_encoding="gzip")
    record(tmp_path / "b", 2, 40, b"metrics", path="/v1/metrics")
    record(tmp_path / "b", 3, 50, b"logs", path="/v1/logs")
    read = list(recordings([tmp_path / "a", tmp_path / "b"]))
    assert [r.body for r in read] == [b"first", b"second", b"third", b"metrics"]
    assert [r.received_ns for r in read] == [10, 20, 30, 40]
    assert [r.compression for r in read] == [None, "gzip", None, None]
    assert (read[0].encoding, read[1].encoding) == (Encoding.JSON, Encoding.PROTOBUF)
    assert read[3].signal is Signal.METRICS


def test_an_archive_of_a_folder_reads_like_the_folder(tmp_path: Path) -> None:
    record(tmp_path / "run", 1, 20, b"later")
    record(tmp_path / "run", 2, 10, b"sooner")
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "run", "run")
    read = list(recordings([tmp_path / "run.tar.gz"]))
    assert [(r.received_ns, r.body) for r in read] == [(10, b"sooner"), (20, b"later")]


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("spans.jsonl", bytes),
        ("spans.jsonl.gz", gzip.compress),
        ("spans.jsonl.zst", zstandard.compress),
    ],
)
def test_json_lines_are_a_body_each_and_never_go_back_in_time(
    tmp_path: Path, name: str, compress: type[bytes]
) -> None:
    lines = "\n".join([json_line(50), "", json_line(40), '{"resourceLogs":[]}', json_line(60)])
    (tmp_path / name).write_bytes(compress(lines.encode()))
    read = list(recordings([tmp_path]))
    assert [r.received_ns for r in read] == [50, 50, 60]
    assert [r.place.rpartition(":")[2] for r in read] == ["1", "3", "5"]


def test_a_document_over_many_lines_is_one_body(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(json.loads(json_line(50)), indent=2))
    (read,) = recordings([path])
    assert (read.place, read.received_ns, read.encoding) == (str(path), 50, Encoding.JSON)


def test_protobuf_files_hold_one_message_or_many_behind_lengths(tmp_path: Path) -> None:
    bodies = [traces(50).SerializeToString(), metrics(60)]
    (tmp_path / "one.pb").write_bytes(bodies[0])
    framed = b"".join(struct.pack(">I", len(b)) + b for b in bodies)
    (tmp_path / "many.pb").write_bytes(framed)
    (one,) = recordings([tmp_path / "one.pb"])
    many = list(recordings([tmp_path / "many.pb"]))
    assert [r.body for r in (one, *many)] == [bodies[0], *bodies]
    assert [(r.received_ns, r.signal) for r in many] == [(50, Signal.TRACES), (60, Signal.METRICS)]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", json_line(1).encode() + b"\n{]\n", "a.jsonl:2: not OTLP JSON"),
        ("a.jsonl", b'{"a":1}\n{"b":2}\n', "a.jsonl:1: not OTLP: no resourceSpans"),
        ("a.json", b'{"a":1}', "a.json: not OTLP: no resourceSpans"),
        ("a.pb", b"\xff\xff\xff\xff\xff", "a.pb: neither OTLP JSON nor OTLP protobuf"),
        ("a.pb.gz", gzip.compress(b"x" * 999)[:-9], "a.pb.gz: broken gzip"),
        ("a.tar", b"no archive", "a.tar: not a tar archive"),
    ],
)
def test_what_can_t_be_read_is_named_with_its_file_and_line(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RecordingError, match=message):
        list(recordings([tmp_path / name]))


def test_paths_without_recordings_are_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "no recorded bodies"), (tmp_path / "x", "no such file")):
        with pytest.raises(RecordingError, match=message):
            list(recordings([path]))


def test_the_shared_captures_are_read_whole(shared_dir: Path) -> None:
    folder = shared_dir / "captures" / "vllm-0.32.0" / "spans" / "run1-http"
    read = list(recordings([folder]))
    assert len(read) == len(list(folder.glob("*.bin")))
    decoded = [r for r in read if r.encoding is Encoding.PROTOBUF]
    assert all(ExportTraceServiceRequest.FromString(r.body).resource_spans for r in decoded)
