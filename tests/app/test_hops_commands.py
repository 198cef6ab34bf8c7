"""`tailburn hops check` and `explain` on files, folders, and a trace of a store."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bench.captures.shipped import unpack
from tailburn.app.hops_commands import hops_app
from tests.app.rows import TRACE
from tests.collector.hops.examples import EXAMPLES, span
from tests.collector.hops.test_explain import body_of


def run(*arguments: object) -> Result:
    return CliRunner().invoke(hops_app, [*map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with one recorded body: a call that is known and a step that isn't."""
    header = {"path": "/v1/traces", "content_type": "application/x-protobuf"}
    (tmp_path / "00001-http.bin").write_bytes(
        body_of(EXAMPLES["genai/call"], span("ask", lab__phase="idle"))
    )
    (tmp_path / "00001-http.json").write_text(json.dumps({**header, "received_unix_ns": 1}))
    yield tmp_path


def test_check_counts_the_rules_of_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("rules:\n  - {rule: a, when: {name: x}, role: noise}\n")
    answer = run("check", file)
    assert (answer.exit_code, answer.stdout) == (0, "ok, 1 rules\n")


def test_check_tells_every_fault_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("rules:\n  - {rule: a, when: {name: x}, role: nois}\n  - {rule: b}\n")
    answer = run("check", file)
    assert answer.exit_code == 1
    first, second = answer.stdout.splitlines()
    assert first.startswith(f"{file}:2: ")
    assert "did you mean noise?" in first
    assert second.startswith(f"{file}:3: ")
    told = [json.loads(line) for line in run("check", file, "--json").stdout.splitlines()]
    assert [problem["line"] for problem in told] == [2, 3]


def test_explain_shows_what_matched_and_drafts_a_rule_for_the_rest(folder: Path) -> None:
    answer = run("explain", folder)
    assert answer.exit_code == 0
    assert "is call, client: rule genai/call (hops.yaml:" in answer.stdout
    assert "Not recognised: 1 of 2 spans" in answer.stdout
    assert "- rule: mine/ask" in answer.stdout


def test_explain_gives_each_span_as_json(folder: Path) -> None:
    lines = run("explain", folder, "--json").stdout.splitlines()
    assert [json.loads(line)["rule"] for line in lines] == ["genai/call", ""]


def test_explain_takes_rules_that_are_tried_out(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("rules:\n  - {rule: mine/ask, when: {name: ask}, role: noise}\n")
    answer = run("explain", folder, "--rules", file)
    assert "All 2 spans are recognised." in answer.stdout


def test_explain_reads_what_every_recorded_client_sent(tmp_path: Path) -> None:
    captures = unpack(tmp_path)
    answer = run("explain", captures / "vllm-0.32.0/spans/run1-http")
    assert "13,675 x POST /v1/chat/completions http send" in answer.stdout
    assert "All 14,691 spans are recognised." in answer.stdout


def test_names_from_outside_can_not_act_on_the_terminal(tmp_path: Path) -> None:
    header = {"content_type": "application/x-protobuf", "received_unix_ns": 1}
    (tmp_path / "00001-http.bin").write_bytes(body_of(span("\x1b]0;owned\x07")))
    (tmp_path / "00001-http.json").write_text(json.dumps(header))
    assert "\x1b" not in run("explain", tmp_path).stdout


def test_a_stored_trace_is_explained_too(store: Path) -> None:
    answer = run("explain", TRACE, "--store", store, "--json")
    client, engine = (json.loads(line) for line in answer.stdout.splitlines())
    assert client["attributes"] == ["gen_ai.usage.output_tokens"]
    assert engine["attributes"] == ["gen_ai.request.id"]
