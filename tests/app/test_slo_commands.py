"""`tailburn slo init`, `check`, `schema`, `import` and `export`."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tailburn.app.errors import UserError
from tailburn.app.slo_commands import slo_app
from tailburn.app.slo_files import load_slos
from tailburn.engine.slo.model import QuerySource, objectives
from tests.app.service import COMMAND, environment
from tests.engine.slo.exchange.sloth_texts import FILE, KUBERNETES
from tests.engine.slo.texts import CHAT, slo_text


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(slo_app, [*map(str, arguments)], input=stdin)


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    file = tmp_path / "chat.yaml"
    file.write_text(CHAT)
    return file


def test_check_shows_every_budget_and_where_its_clocks_start(chat: Path) -> None:
    answer = run("check", chat)
    assert answer.exit_code == 0
    assert [line.split()[1] for line in answer.stdout.splitlines() if line.startswith(" chat")] == [
        "availability",
        "goodput",
        "ttft_p95",
        "ttft_p99",
        "tpot_p95",
    ]
    assert (
        "ttft: from the gateway's start of the request to its first output token" in answer.stdout
    )
    assert answer.stderr == "ok, SLOs: 1, budgets: 5\n"


def test_check_gives_budgets_as_json(chat: Path) -> None:
    rows = [json.loads(line) for line in run("check", chat, "--json").stdout.splitlines()]
    assert rows[2] == {
        "slo": "chat",
        "objective": "ttft_p95",
        "budget_ratio": 0.05,
        "threshold_s": 0.5,
        "window": "30d",
        "by": [],
        "definition": rows[2]["definition"],
        "file": str(chat),
        "line": 3,
    }


def test_check_gives_problems_as_json_and_ends_with_2() -> None:
    answer = run("check", "-", "--json", stdin=slo_text("availability: 0.9"))
    assert answer.exit_code == 2
    assert json.loads(answer.stdout) == {
        "file": "standard input",
        "line": 5,
        "field": "spec.availability",
        "given": "0.9",
        "wanted": "is a ratio where a per cent is meant; did you mean 90%?",
    }


def test_bad_files_end_the_program_with_2_and_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(slo_text("availability: 0.9\nvantag: client"))
    ended = subprocess.run(
        [*COMMAND, "slo", "check", "a.yaml"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert [line[:26] for line in ended.stderr.splitlines()] == [
        "tailburn: a.yaml:5: spec.a",
        "tailburn: a.yaml:6: spec.v",
    ]


@pytest.mark.parametrize("preset", ["chat", "completion", "document", "batch"])
def test_init_writes_a_file_that_is_right(preset: str, tmp_path: Path) -> None:
    file = tmp_path / "slos" / "ours.yaml"
    assert run("init", "--preset", preset, "--name", "ours", "-o", file).exit_code == 0
    (slo,) = load_slos([file])
    assert slo.name == "ours"
    assert file.read_text().count("#") > 8  # it is commented
    assert (file.parent / "serving-slo.schema.json").is_file()


def test_presets_promise_what_their_kind_of_serving_needs(tmp_path: Path) -> None:
    for preset in ("chat", "completion", "document", "batch"):
        run("init", "--preset", preset, "-o", tmp_path / f"{preset}.yaml")
    budgets = {
        slo.name: [objective.name for objective in objectives(slo)] for slo in load_slos([tmp_path])
    }
    assert budgets == {
        "chat": ["availability", "goodput", "ttft_p95", "ttft_p99", "tpot_p95"],
        "completion": ["availability", "goodput", "ttft_p95", "ttft_p99", "e2e_p95"],
        "document": ["availability", "tpot_p95", "e2e_p99"],
        "batch": ["availability", "completion"],
    }


def test_init_prints_a_file_where_none_is_named() -> None:
    text = run("init").stdout
    assert text.startswith("# yaml-language-server: $schema=serving-slo.schema.json\napiVersion")
    assert run("check", "-", stdin=text).exit_code == 0


def test_init_replaces_no_file_unasked(chat: Path) -> None:
    answer = run("init", "-o", chat)
    assert isinstance(answer.exception, UserError)
    assert chat.read_text() == CHAT
    assert run("init", "-o", chat, "--force").exit_code == 0
    assert chat.read_text() != CHAT


def test_init_refuses_a_name_that_is_none() -> None:
    answer = run("init", "--name", "-x")
    assert isinstance(answer.exception, UserError)
    assert answer.exception.lines[0].startswith("metadata.name: '-x' is no name; want at most")


def test_schema_is_json() -> None:
    assert json.loads(run("schema").stdout)["$schema"].startswith("https://")


def test_import_writes_a_file_for_each_slo_and_tells_what_is_lost(tmp_path: Path) -> None:
    (tmp_path / "sloth.yml").write_text(FILE)
    answer = run("import", tmp_path / "sloth.yml", "-o", tmp_path / "ours")
    assert answer.exit_code == 0
    assert answer.stdout == ""
    orders, search = load_slos([tmp_path / "ours"])
    assert (orders.name, search.name) == ("shop-orders", "shop-search")
    assert isinstance(orders.source, QuerySource)
    assert "slos[0].alerting.name: 'OrdersFail' is not carried over" in answer.stderr
    assert "not carried over as they were: 4 values" in answer.stderr


def test_import_prints_what_can_be_checked_at_once() -> None:
    text = run("import", "-", "--window", "28d", stdin=FILE).stdout
    rows = run("check", "-", "--json", stdin=text).stdout.splitlines()
    assert [json.loads(row)["window"] for row in rows] == ["28d", "28d"]


def test_import_wants_a_window_with_its_unit() -> None:
    answer = run("import", "-", "--window", "30", stdin=FILE)
    assert isinstance(answer.exception, UserError)
    assert answer.exception.lines == ("--window 30: want a number and its unit, such as 30d",)


def test_import_ends_with_1_when_strict_and_something_is_lost() -> None:
    assert run("import", "-", "--strict", stdin=FILE).exit_code == 1
    whole = FILE.partition("    alerting:")[0]
    assert run("import", "-", "--strict", stdin=whole).exit_code == 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (FILE.replace("99.9", "101"), "slos[0].objective: '101%' is out of bounds"),
        (CHAT, "apiVersion: 'tailburn/v1' is not known; want prometheus/v1"),
        ("apiVersion: openslo/v1\nkind: Service\nmetadata: {name: a}\n", "no SLO could be carried"),
    ],
)
def test_import_writes_nothing_where_something_is_wrong(
    text: str, wanted: str, tmp_path: Path
) -> None:
    answer = run("import", "-", "-o", tmp_path / "ours", stdin=text)
    assert isinstance(answer.exception, UserError)
    assert wanted in str(answer.exception.lines)
    assert not (tmp_path / "ours").exists()


def test_export_comes_back_with_the_same_budgets(chat: Path, tmp_path: Path) -> None:
    file = tmp_path / "openslo.yaml"
    answer = run("export", chat, "-o", file)
    assert answer.exit_code == 0
    assert f"{chat}:3: spec.regression: has no counterpart in OpenSLO; left out" in answer.stderr
    run("import", file, "-o", tmp_path / "back")
    (slo,) = load_slos([chat])
    back = load_slos([tmp_path / "back"])
    assert sorted(objectives(x)[0].budget_ratio for x in back) == sorted(
        objective.budget_ratio for objective in objectives(slo)
    )


def test_export_asks_what_the_rules_ask(tmp_path: Path) -> None:
    (tmp_path / "sloth.yaml").write_text(KUBERNETES)
    run("import", tmp_path / "sloth.yaml", "-o", tmp_path / "ours.yaml")
    text = run("export", tmp_path / "ours.yaml").stdout
    assert 'orders_total{code=~"5.."}[{{.window}}]' in text
    text = run("export", "-", stdin=CHAT).stdout
    assert 'tailburn_slo_bad_total{slo="chat"' in text


def test_export_is_strict_on_demand(chat: Path) -> None:
    assert run("export", chat, "--strict").exit_code == 1
    plain = slo_text("availability: 99%")
    assert run("export", "-", "--strict", stdin=plain).exit_code == 0
