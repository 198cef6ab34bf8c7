"""`tailburn token`: the secret once, the list without secrets, and what goes wrong."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tailburn.app.access import Gate, hash_of
from tailburn.app.token_commands import token_app
from tailburn.collector.doors.access import Scope
from tailburn.engine.store.state.database import open_state, state_path
from tailburn.engine.store.state.tokens import Tokens


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def token(*arguments: str) -> Result:
    return CliRunner().invoke(token_app, [*arguments, "--store", "store"])


def test_the_secret_alone_is_on_stdout_and_opens_the_door() -> None:
    result = token("add", "ci", "--scope", "ingest", "--tenant", "acme")

    assert result.exit_code == 0
    secret = result.stdout.strip()
    state = open_state(state_path(Path("store")))
    headers = ((b"authorization", f"Bearer {secret}".encode()),)
    assert Gate(Tokens(state)).admit("192.0.2.7", headers, Scope.INGEST) == "acme"
    state.close()
    assert "Shown this once" in result.stderr
    assert secret not in result.stderr


def test_no_file_of_the_store_holds_the_secret() -> None:
    secret = token("add", "ci", "--scope", "admin").stdout.strip()

    files = [path.read_bytes() for path in Path("store").iterdir()]
    assert any(hash_of(secret.encode()) in data for data in files)
    assert not any(secret[16:].encode() in data for data in files)


def test_json_is_one_object_a_line() -> None:
    added = json.loads(token("add", "ci", "--scope", "read", "--scope", "ingest", "--json").stdout)
    token("add", "grafana", "--scope", "read")
    listed = [json.loads(line) for line in token("list", "--json").stdout.splitlines()]
    revoked = json.loads(token("revoke", added["id"], "--json").stdout)

    assert added.pop("token").startswith(f"tb_{added['id']}_")
    assert added["scopes"] == ["ingest", "read"]
    assert [row["name"] for row in listed] == ["ci", "grafana"]
    assert listed[0] == added
    assert revoked["revoked_ns"] > revoked["created_ns"]


def test_the_list_shows_revoked_ones_too() -> None:
    token("add", "ci", "--scope", "ingest")
    assert token("revoke", "ci").exit_code == 0

    shown = token("list").stdout

    assert "ci" in shown and "ingest" in shown
    assert "tb_" not in shown


def test_an_empty_list_says_who_is_served() -> None:
    result = token("list")

    assert result.stdout == ""
    assert "only processes on this machine are served" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("revoke", "nobody"), "no live token has the id or name 'nobody'"),
        (("add", "a b", "--scope", "read"), "name 'a b': want 1 to 64 letters"),
        (("add", "ci", "--scope", "read"), "a token named 'ci' exists; revoke it first"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(arguments: tuple[str, ...], word: str) -> None:
    token("add", "ci", "--scope", "ingest")

    result = token(*arguments)

    assert result.exit_code != 0
    assert word in str(result.exception)


def test_a_store_that_can_not_be_opened_is_named() -> None:
    Path("store").write_text("a file in the way")

    assert "state.sqlite: can't be opened" in str(token("list").exception)
