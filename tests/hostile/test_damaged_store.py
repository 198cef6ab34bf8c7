"""A store that a disk, a hand or another version has been at."""

import json
import struct
from pathlib import Path

import google_crc32c
import pytest

from tests.app.conftest import Run
from tests.app.service import FREE_PORTS, chat

pytestmark = pytest.mark.timeout(600)
T0_NS = 1_780_000_000 * 10**9


@pytest.fixture
def written(run: Run, tmp_path: Path) -> Path:
    """A store with one request, replayed."""
    (tmp_path / "given.pb").write_bytes(chat(1, T0_NS).SerializeToString())
    assert run("replay", tmp_path / "given.pb", "--store", tmp_path / "written").code == 0
    return tmp_path / "written"


def test_a_truncated_segment_is_named_and_the_answer_says_so(run: Run, written: Path) -> None:
    (segment,) = (written / "requests").rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:100])
    answer = run("requests", "--store", written)
    assert answer.code == 0
    assert f"left out: {segment} is damaged" in answer.err.replace("\n", "")


@pytest.mark.parametrize("command", [["balance"], ["replay", "given.pb"], ["serve", *FREE_PORTS]])
def test_a_snapshot_of_another_version_is_refused_and_left_alone(
    run: Run, written: Path, command: list[str]
) -> None:
    snapshots = sorted((written / "snapshots").glob("*.snapshot"))
    for path in snapshots:
        path.write_bytes(of_form(path.read_bytes(), 99))
    before = [path.read_bytes() for path in snapshots]
    answer = run(*command, "--store", written)
    assert (answer.code, answer.out) == (2, "")
    assert "is of form 99, this version of tailburn reads form" in answer.err.splitlines()[-1]
    assert [path.read_bytes() for path in snapshots] == before


def of_form(snapshot: bytes, form: int) -> bytes:
    """The same snapshot, whole, as another version would mark it."""
    magic, length = struct.unpack_from("<8sQ", snapshot)
    head = json.loads(snapshot[16 : 16 + length]) | {"form": form}
    text = json.dumps(head).encode()
    content = struct.pack("<8sQ", magic, len(text)) + text + snapshot[16 + length : -4]
    return content + struct.pack("<I", google_crc32c.value(content))


def test_a_store_that_is_a_file_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    answer = run("serve", "--store", tmp_path / "file", *FREE_PORTS)
    assert answer.code == 2 and answer.err.count("\n") == 1 and "file" in answer.err
