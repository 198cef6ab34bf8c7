"""`tailburn lab list`, `explain` and `run`."""

import json
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tailburn.app.errors import UserError
from tailburn.app.lab_commands import lab_app
from tailburn.lab.faults.catalogue import SCENARIOS
from tests.app.service import COMMAND, environment

QUICK = ("--hours", "0.1", "--rate", "2", "--epoch", "2026-11-30T00:00Z")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(lab_app, [*map(str, arguments)])


def refused(*arguments: object) -> str:
    """What a command says that can't run as asked."""
    result = run(*arguments)
    assert isinstance(result.exception, UserError), result.output
    return "\n".join(result.exception.lines)


def test_the_list_has_every_scenario_with_what_is_broken() -> None:
    lines = run("list").stdout.splitlines()
    shown = {line.split()[0]: line for line in lines if line.strip()}
    assert set(SCENARIOS) <= set(shown)
    assert all(s.name in shown[s.id] and s.title in shown[s.id] for s in SCENARIOS.values())
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [row["id"] for row in rows] == list(SCENARIOS)


@pytest.mark.parametrize("name", ["S23", "s23", "gateway-buffering"])
def test_a_scenario_is_explained_by_id_or_name(name: str) -> None:
    words = run("explain", name).stdout.split()
    said = " ".join(words)
    told = SCENARIOS["S23"]
    for text in (told.broken, told.expect, told.why, told.confusable[0].words):
        assert " ".join(text.split()) in said
    row = json.loads(run("explain", name, "--json").stdout)
    assert (row["id"], row["verdict"]) == ("S23", "HOP gateway")


def test_a_run_writes_bodies_scrapes_and_the_truth_apart(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run("run", "S23", "--severity", "strong", "--out", out, *QUICK)
    assert result.exit_code == 0, result.output
    assert "S23 gateway-buffering, strong, 0:03 to 0:04 of the run" in result.stdout
    bodies = sorted((out / "telemetry").glob("*.bin"))
    assert len(bodies) == len(list((out / "telemetry").glob("*.json"))) > 100
    truth = json.loads((out / "truth" / "truth.json").read_text())
    assert truth["end_ns"] == 360 * 10**9
    assert truth["truths"][0]["affected"] == {"gateway": ["gateway-1"]}
    assert truth["stacks"]["engine"] == ["vllm"]
    attempts = pq.read_table(out / "truth" / "attempts.parquet")
    assert attempts.num_rows > 300
    assert list((out / "scrapes").glob("vllm-0*.om"))
    assert not list((out / "telemetry").glob("*truth*"))


def test_the_same_seed_and_epoch_write_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert (
            run("run", "S1", "S31", "--out", tmp_path / name, "--seed", seed, *QUICK).exit_code == 0
        )
    a, b, c = (
        {p.name: p.read_bytes() for p in (tmp_path / n / "telemetry").iterdir()} for n in "abc"
    )
    assert a == b
    assert a != c


def test_a_stack_changes_what_is_told(tmp_path: Path) -> None:
    stacks = ("--stack", "engine=sglang,gateway=fastapi", "--stack", "router=none")
    assert run("run", "--out", tmp_path / "run", *stacks, *QUICK).exit_code == 0
    truth = json.loads((tmp_path / "run" / "truth" / "truth.json").read_text())
    assert truth["stacks"] == {
        "client": ["openai"], "gateway": ["fastapi"], "router": ["none"], "engine": ["sglang"],
    }  # fmt: skip
    bodies = b"".join(p.read_bytes() for p in (tmp_path / "run" / "telemetry").glob("*.bin"))
    assert b"sglang" in bodies
    assert b"vllm." not in bodies


def test_progress_and_summary_are_lines_of_json(tmp_path: Path) -> None:
    shown = run("run", "--out", tmp_path / "run", "--json", *QUICK).stdout
    rows = [json.loads(line) for line in shown.splitlines()]
    assert [rows[0]["type"], rows[1]["type"], rows[-1]["type"]] == ["compiling", "run", "summary"]
    assert rows[-1]["refused_bodies"] == 0
    assert rows[-1]["bodies"] == len(list((tmp_path / "run" / "telemetry").glob("*.bin")))


def test_a_workload_of_ones_own_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    rows = "".join(f"{i / 2},{100 + i % 7},{5}\n" for i in range(600))
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    assert run("run", "--workload", file, "--out", tmp_path / "run", *QUICK).exit_code == 0
    attempts = pq.read_table(tmp_path / "run" / "truth" / "attempts.parquet")
    assert set(attempts["output_tokens"].to_pylist()) == {5}
    truth = json.loads((tmp_path / "run" / "truth" / "truth.json").read_text())
    assert truth["workloads"][0]["source"] == str(file)
    assert run("run", "--workload", "mooncake", "--out", tmp_path / "b", *QUICK).exit_code == 0
    truth = json.loads((tmp_path / "b" / "truth" / "truth.json").read_text())
    assert truth["workloads"][0]["name"] == "mooncake"


BAD = {
    "no scenario of that name": (("gateway-bufering",), "did you mean gateway-buffering"),
    "no hop": (("--stack", "engin=vllm"), "no hop 'engin'; did you mean engine?"),
    "no stack": (("--stack", "engine=vlm"), "engine: no stack 'vlm'; did you mean vllm"),
    "no equals": (("--stack", "vllm"), "want HOP=STACK, such as engine=sglang"),
    "no rate": (("--rate", "0"), "--rate 0: want more than 0"),
    "no length": (("--hours", "0"), "--hours 0: want more than 0"),
    "too late": (("S23", "--begin", "5h"), "--begin 5h: the run lasts 1 h"),
    "before a run": (("S23", "--begin=-5m"), "want a time into the run"),
    "no unit": (("S23", "--lasts", "5"), "want a number and its unit, such as 90s"),
    "no time": (("--epoch", "soon"), "--epoch soon: want a time such as"),
    "epoch of a live run": (("--live", "--epoch", "2026-11-30"), "takes no --epoch"),
    "past of none": (("--past-rate", "1"), "--past-rate is for the past of a --live run"),
    "no workload": (("--workload", "azure-cod"), "no workload 'azure-cod'; did you mean azure-co"),
    "no file": (("--workload", "/nowhere/w.csv"), "/nowhere/w.csv: no such file"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in refused("run", *arguments, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_of_requests_is_judged_by_row_and_column(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n1,5,6\n2,-4,5\n")
    said = refused("run", "--workload", file, "--out", tmp_path / "run")
    assert "row 3, column ContextTokens: '-4'; want a number from 0" in said


def test_one_target_is_wanted_and_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    assert "one of --to URL and --out DIR" in refused("run")
    assert "one of --to URL and --out DIR" in refused("run", "--to", "http://x", "--out", tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    assert "is there already" in refused("run", "--out", tmp_path, *QUICK)
    assert "want http://host:port" in refused("run", "--to", "lab.test", *QUICK)


def test_a_service_that_is_not_there_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: httpx.Client, *given: object, **named: object) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx.Client, "post", gone)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    said = refused("run", "--to", "http://127.0.0.1:9", "--truth", tmp_path / "truth", *QUICK)
    assert "nothing was taken: http://127.0.0.1:9/v1/traces: ConnectError" in said


def test_what_a_service_refuses_is_summed_up_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([200, 400, 503])

    def answer(self: httpx.Client, url: str, **named: object) -> httpx.Response:
        return httpx.Response(next(answers, 200), request=httpx.Request("POST", url))

    monkeypatch.setattr(httpx.Client, "post", answer)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    result = run("run", "--to", "http://127.0.0.1:9", "--truth", tmp_path / "truth", *QUICK)
    assert result.exit_code == 1
    assert "1 asked again, 1 bodies refused, 0 spans rejected" in result.stdout
    assert "HTTP 503" in result.stdout or "HTTP 400" in result.stdout


def test_an_error_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    import subprocess

    ended = subprocess.run(
        [*COMMAND, "lab", "run", "S99", "--out", str(tmp_path / "run")],
        capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("tailburn: no scenario 'S99'")
    assert ended.stderr.count("\n") == 1
