"""One table of settings, from file, environment and flags."""

from pathlib import Path

import pytest

from tailburn.app.errors import SettingsError
from tailburn.app.settings import TABLE, Row, Settings
from tailburn.app.settings_sources import load_settings


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder without a file of settings, and no TAILBURN_* variables."""
    for row in TABLE:
        monkeypatch.delenv(row.variable, raising=False)
    monkeypatch.delenv("TAILBURN_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _errors(flags: dict[str, object], config: Path | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, config)
    return caught.value.lines


def test_without_any_source_the_table_s_defaults_hold() -> None:
    assert load_settings({}) == Settings()


def test_flags_win_over_the_environment_and_that_over_the_file(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "tailburn.toml").write_text("http_port = 11\ngrpc_port = 12\nweb_port = 13\n")
    monkeypatch.setenv("TAILBURN_GRPC_PORT", "22")
    monkeypatch.setenv("TAILBURN_WEB_PORT", "23")
    settings = load_settings({"web_port": "33", "host": None})
    assert (settings.http_port, settings.grpc_port, settings.web_port) == (11, 22, 33)
    assert settings.host == "127.0.0.1"


def test_lists_are_split_at_commas_wherever_they_come_from(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.yaml", "b.yaml"):
        (bare / name).touch()
    monkeypatch.setenv("TAILBURN_HOPS_FILES", "a.yaml, b.yaml")
    settings = load_settings({"dimension_files": ["a.yaml"]})
    assert settings.hops_files == (Path("a.yaml"), Path("b.yaml"))
    assert settings.dimension_files == (Path("a.yaml"),)


def test_every_bad_value_is_named_at_once_with_its_place_and_what_is_wanted(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = bare / "other.toml"
    other.write_text('idle_close_s = -1\nclock = "sun"\nhtp_port = 1\n')
    monkeypatch.setenv("TAILBURN_GRPC_PORT", "70000")
    monkeypatch.setenv("TAILBURN_INSECURE_TRANSPORTS", "true")
    assert set(_errors({"http_port": "http"}, other)) == {
        "--http-port='http': want a whole number from 0 to 65535",
        "TAILBURN_GRPC_PORT='70000': want a whole number from 0 to 65535",
        "TAILBURN_INSECURE_TRANSPORTS: no such setting; did you mean TAILBURN_INSECURE_TRANSPORT?",
        f"{other}: idle_close_s = -1: want a number above 0",
        f"{other}: clock = 'sun': want one of wall, telemetry",
        f"{other}: htp_port: no such setting; did you mean http_port?",
    }


def test_settings_that_only_make_sense_together_are_asked_for() -> None:
    (line,) = _errors({"tls_client_ca": __file__})
    assert line == "tls_cert is not set: want a path, since tls_client_ca is set"


def test_a_file_that_is_not_there_is_said_before_anything_starts(bare: Path) -> None:
    assert _errors({}, Path("gone.toml")) == ("gone.toml: No such file or directory",)
    (line,) = _errors({"hops_files": ["gone.yaml"]})
    assert line == "hops_files='gone.yaml': want a file that exists"
    (bare / "tailburn.toml").write_text("http_port = \n")
    (line,) = _errors({})
    assert line.startswith("tailburn.toml: not TOML: Invalid value (at line 1")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('"mysql://me:hidden@host/db"', "state_url: want postgresql://USER@HOST:PORT/DATABASE"),
        ('["postgresql://me:hidden@host/db"]', "tailburn.toml: state_url = ...: want text"),
    ],
    ids=["another database", "a list"],
)
def test_an_address_that_is_wrong_is_told_without_its_password(
    bare: Path, written: str, said: str
) -> None:
    (bare / "tailburn.toml").write_text(f"state_url = {written}\n")
    assert _errors({}) == (said,)


def test_settings_are_shown_without_the_password_of_the_state() -> None:
    settings = load_settings({"state_url": "postgresql://me:hidden@host/db"})
    assert settings.state_url.endswith("@host/db") and "hidden" not in repr(settings)


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_every_setting_says_what_it_is_and_what_it_wants(row: Row) -> None:
    assert row.help.endswith(".") and row.wanted and row.metavar
