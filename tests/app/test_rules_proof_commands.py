"""`tailburn rules check` and `test`: what a user's CI sees."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.conftest import Run

SLO = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat}
spec: {vantage: gateway, window: 30d, availability: 99.9%}
"""


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    file = tmp_path / "chat.yaml"
    file.write_text(SLO)
    return file


@pytest.fixture
def promtool(need_program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """promtool on the PATH."""
    folder = str(Path(need_program("promtool")).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([folder, os.environ["PATH"]]))


def test_a_sound_slo_is_ok(run: Run, slo: Path) -> None:
    ended = run("rules", "check", "-i", slo, "--rate", "1", "--retention", "40d")
    assert (ended.code, ended.out) == (0, "ok, 1 SLO\n")


def test_a_warning_fails_under_strict_only(run: Run, slo: Path) -> None:
    ended = run("rules", "check", "-i", slo, "--rate", "0.01")
    assert ended.code == 0
    assert ended.out.startswith(f"{slo}:")
    assert "warning BUDGET_TOO_SMALL: chat: spec.availability" in ended.out
    assert run("rules", "check", "-i", slo, "--rate", "0.01", "--strict").code == 1


def test_an_error_fails_and_is_a_row_of_json(run: Run, slo: Path) -> None:
    ended = run("rules", "check", "-i", slo, "--retention", "15d", "--json")
    assert ended.code == 1
    row = json.loads(ended.out)
    assert (row["code"], row["severity"], row["slo"], row["field"]) == (
        "LOOKBACK_BEYOND_RETENTION",
        "error",
        "chat",
        "spec.window",
    )
    assert (row["file"], row["line"] >= 1) == (str(slo), True)


def test_names_of_older_guides_are_answered_with_the_real_ones(
    run: Run, slo: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "ours.yml"
    rules.write_text("groups:\n  - expr: vllm:gpu_cache_usage_perc > 0.9\n")
    ended = run("rules", "check", "-i", slo, "--existing", rules)
    assert ended.code == 1
    assert ended.out.startswith(f"{rules}:2: error OLD_SERIES_NAME: ")
    assert "vllm:kv_cache_usage_perc" in ended.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--retention", "15"], "--retention '15': want a time such as 15d or 1y"),
        (["--existing", "none.yml"], "none.yml: can't be read"),
        (["--prometheus", "http://127.0.0.1:1"], "no answer from Prometheus"),
        (["--prometheus", "nonsense"], "no answer from Prometheus"),
    ],
)
def test_what_can_not_be_asked_ends_with_2(
    run: Run, slo: Path, options: list[str], told: str
) -> None:
    ended = run("rules", "check", "-i", slo, *options)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


def test_a_bad_slo_ends_with_2(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(SLO.replace("99.9%", "0.999"))
    for command in ("check", "test"):
        ended = run("rules", command, "-i", bad)
        assert (ended.code, ended.out) == (2, "")
        assert str(bad) in ended.err


@pytest.mark.usefixtures("promtool")
def test_generated_rules_pass_their_tests(run: Run, slo: Path, tmp_path: Path) -> None:
    out = tmp_path / "proof"
    ended = run("rules", "test", "-i", slo, "-o", out)
    assert ended.code == 0, ended.out
    assert all(line.endswith(": ok") for line in ended.out.splitlines())
    names = sorted(path.name for path in out.iterdir())
    assert names[-1] == "chat.rules.yaml"
    assert all(name.startswith("chat.") for name in names)


@pytest.mark.usefixtures("promtool")
def test_rules_that_were_changed_by_hand_fail(run: Run, slo: Path, tmp_path: Path) -> None:
    rules = tmp_path / "deployed.yml"
    generated = run("rules", "generate", "-i", slo).out
    assert "> 14.4" in generated
    rules.write_text(generated.replace("> 14.4", "> 28.8"))
    ended = run("rules", "test", "-i", slo, "--rules", rules)
    assert ended.code == 1
    assert "FAILED" in ended.out
    assert 'long="1h"' in ended.out


def test_without_promtool_the_tests_are_written_and_it_says_how_to_get_it(
    run: Run, slo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    ended = run("rules", "test", "-i", slo, "-o", tmp_path / "proof")
    assert (ended.code, ended.out) == (2, "")
    assert "promtool is not on the PATH" in ended.err
    assert "https://prometheus.io/download" in ended.err
    assert (tmp_path / "proof" / "chat.rules.yaml").is_file()
