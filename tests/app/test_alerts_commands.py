"""`tailburn alerts`: files written whole or not at all, checked by amtool where it is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tailburn.app.cli import cli
from tailburn.app.errors import UserError

CHAT = """\
apiVersion: tailburn/v1
kind: ServingSLO
metadata: {name: chat, labels: {team: assistants}}
spec:
  vantage: gateway
  availability: 99.9%
"""
THEIRS = """\
# ours since 2019
route:
  receiver: desk
receivers:
  - name: desk
    webhook_configs: [{url: 'http://127.0.0.1:9/'}]   # the old way
"""


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    file = tmp_path / "chat.yaml"
    file.write_text(CHAT)
    return file


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "alertmanager.yml"
    file.write_text(THEIRS)
    return file


@pytest.fixture
def amtool(need_program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(Path(need_program("amtool")).parent)
    monkeypatch.setenv("PATH", folder, prepend=":")


@pytest.fixture
def no_amtool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["alerts", *map(str, arguments)])


def refused(*arguments: object) -> list[str]:
    answer = run(*arguments)
    assert isinstance(answer.exception, UserError)
    assert answer.stdout == ""
    return list(answer.exception.lines)


def test_a_configuration_is_written_with_its_templates(
    slo: Path, tmp_path: Path, amtool: None
) -> None:
    out = tmp_path / "out" / "am.yml"
    answer = run("routes", "-i", slo, "-o", out, "--ticket", "slack:#slo")
    assert answer.exit_code == 0
    assert answer.stdout == ""
    assert "/etc/alertmanager/secrets/tailburn-page-pagerduty" in answer.stderr
    assert "not checked" not in answer.stderr
    assert sorted(path.name for path in out.parent.iterdir()) == ["am.yml", "tailburn.tmpl"]
    assert run("check", out, "-i", slo).exit_code == 0


def test_without_amtool_it_says_that_nothing_was_checked(
    slo: Path, tmp_path: Path, no_amtool: None
) -> None:
    answer = run("routes", "-i", slo)
    assert answer.exit_code == 0
    assert "not checked: amtool is missing; apt-get install" in answer.stderr
    assert refused("check", slo, "-i", slo)[0].startswith("amtool is missing")


def test_a_users_file_is_merged_into_and_kept(slo: Path, theirs: Path, amtool: None) -> None:
    assert run("routes", "-i", slo, "--into", theirs, "-o", theirs).exit_code == 0
    merged = theirs.read_text()
    assert [line for line in THEIRS.splitlines() if line not in merged.splitlines()] == []
    assert run("routes", "-i", slo, "--into", theirs, "-o", theirs).exit_code == 0
    assert theirs.read_text() == merged


def test_the_rights_of_a_users_file_stay(slo: Path, theirs: Path, amtool: None) -> None:
    theirs.chmod(0o640)
    assert run("routes", "-i", slo, "--into", theirs, "-o", theirs).exit_code == 0
    assert theirs.stat().st_mode & 0o777 == 0o640


def test_a_link_to_a_users_file_stays_one(slo: Path, theirs: Path, amtool: None) -> None:
    link = theirs.with_name("link.yml")
    link.symlink_to(theirs)
    assert run("routes", "-i", slo, "--into", link, "-o", link).exit_code == 0
    assert link.is_symlink()
    assert "tailburn-page" in theirs.read_text()


def test_check_tells_what_is_out_of_date(slo: Path, tmp_path: Path, amtool: None) -> None:
    out = tmp_path / "am.yml"
    wanted = ("routes", "-i", slo, "-o", out)
    answer = run(*wanted, "--check")
    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        f"{out}: is missing",
        f"{out.with_name('tailburn.tmpl')}: is missing",
    ]
    run(*wanted)
    assert run(*wanted, "--check").exit_code == 0
    answer = run(*wanted, "--ticket", "opsgenie", "--check")
    assert (answer.exit_code, answer.stdout) == (1, f"{out}: is out of date\n")


def test_what_amtool_refuses_is_not_written(slo: Path, theirs: Path, amtool: None) -> None:
    theirs.write_text(THEIRS.replace("webhook_configs", "webhook_config"))
    before = theirs.read_text()
    lines = refused("routes", "-i", slo, "--into", theirs, "-o", theirs)
    assert any(f"{theirs}: amtool: " in line and "webhook_config" in line for line in lines)
    assert theirs.read_text() == before
    assert not theirs.with_name("tailburn.tmpl").exists()


def test_a_configuration_without_ours_lets_alerts_go_past(
    slo: Path, theirs: Path, amtool: None
) -> None:
    answer = run("check", theirs, "-i", slo)
    assert answer.exit_code == 1
    assert answer.stdout.splitlines()[0].endswith("-> desk")
    assert "go past our routes" in answer.stderr


def test_check_tells_apart_what_a_route_looks_at(slo: Path, theirs: Path, amtool: None) -> None:
    """A catch-all of theirs before our route, in the older way of writing, takes one window."""
    routes = "  receiver: desk\n  routes:\n  - match: {long: 1h}\n    receiver: desk\n"
    theirs.write_text(THEIRS.replace("  receiver: desk\n", routes, 1))
    assert run("routes", "-i", slo, "--into", theirs, "-o", theirs).exit_code == 0
    ours = theirs.read_text()
    assert run("check", theirs, "-i", slo).exit_code == 0
    first = "  - match: {long: 1h}\n    receiver: desk\n"
    begin = ours.index("  # >>> tailburn")
    theirs.write_text(ours[:begin] + first + ours[begin:])
    answer = run("check", theirs, "-i", slo)
    assert answer.exit_code == 1
    strays = [line for line in answer.stdout.splitlines() if line.endswith("-> desk")]
    assert strays
    assert all(" long=1h " in line for line in strays)
    assert not any("objective=" in line for line in strays)


def test_a_receiver_of_theirs_is_no_stray(slo: Path, theirs: Path, amtool: None) -> None:
    ways = ("--page", "receiver:desk", "--ticket", "receiver:desk")
    assert run("routes", "-i", slo, "--into", theirs, "-o", theirs, *ways).exit_code == 0
    assert run("check", theirs, "-i", slo).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--page", "pager"), "--page: 'pager': want [TEAM=]WAY, where WAY is"),
        (("--ticket", "team=slack"), "--ticket: team 'team' has no SLO: is not known; want"),
        (("--into", "none.yml"), "none.yml: can't be read: No such file or directory"),
        (("--check",), "--check compares with a file: name it with --out FILE"),
    ],
)
def test_what_can_not_be_is_told(slo: Path, arguments: tuple[str, ...], line: str) -> None:
    assert refused("routes", "-i", slo, *arguments)[0].startswith(line)


def test_a_file_that_is_no_text_is_told(slo: Path, theirs: Path) -> None:
    theirs.write_bytes(b"\xff\xfe")
    assert refused("routes", "-i", slo, "--into", theirs)[0].startswith(f"{theirs}: is not UTF-8")


def test_the_template_is_printed(tmp_path: Path) -> None:
    assert '{{ define "tailburn.title" -}}' in run("template").stdout
