"""Settings read from a file, the environment and flags, in growing precedence."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, create_model
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tailburn.app.errors import SettingsError
from tailburn.app.settings import TABLE, Row, Settings
from tailburn.engine.problems import nearest

DEFAULT_FILE = Path("tailburn.toml")
ROWS = {row.name: row for row in TABLE}
# Variables that begin like settings and are none: the file to read, and the tests' data.
_NO_SETTINGS = {"TAILBURN_CONFIG", "TAILBURN_SHARED"}


def load_settings(flags: Mapping[str, object], config: Path | None = None) -> Settings:
    """Settings from `config` (else `tailburn.toml`, if there), TAILBURN_* and `flags`.

    Flags that are None were not given. Raises SettingsError with a line for each bad value.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    path, from_file = _read_file(config)
    wrong = [*_unknown(path, from_file), *_unknown_variables()]
    try:
        loaded = _model(from_file)(**given)
    except ValidationError as error:
        wrong += [_line(e, given, path, from_file) for e in error.errors() if e["loc"][0] in ROWS]
        raise SettingsError(*wrong) from None
    if wrong:
        raise SettingsError(*wrong)
    settings = Settings(**{name: getattr(loaded, name) for name in ROWS})
    _check_together(settings)
    return settings


def _read_file(config: Path | None) -> tuple[Path, dict[str, object]]:
    if config is None:
        told = os.environ.get("TAILBURN_CONFIG")
        config = Path(told) if told else None
    path = config or DEFAULT_FILE
    if config is None and not path.exists():
        return path, {}
    try:
        return path, tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from None


def _unknown(path: Path, from_file: Iterable[str]) -> list[str]:
    return [
        f"{path}: {name}: no such setting{nearest(name, ROWS)}"
        for name in from_file
        if name not in ROWS
    ]


def _unknown_variables() -> list[str]:
    known = {row.variable for row in TABLE} | _NO_SETTINGS
    names = [n for n in os.environ if n.startswith("TAILBURN_") and n not in known]
    return [f"{name}: no such setting{nearest(name, known)}" for name in names]


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _model(from_file: dict[str, object]) -> Callable[..., BaseSettings]:
    """The table as a pydantic-settings model that also reads `from_file`."""

    class Sources(BaseSettings):
        model_config = SettingsConfigDict(
            env_prefix="TAILBURN_",
            env_ignore_empty=True,
            enable_decoding=False,
            extra="ignore",
        )

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, from_file)

    columns: dict[str, Any] = {row.name: (_type(row), row.default) for row in TABLE}
    return create_model("SettingsFromSources", __base__=Sources, **columns)


def _type(row: Row) -> Any:
    return Annotated[row.type, BeforeValidator(_split)] if row.is_list else row.type


def _line(
    error: ErrorDetails,
    flags: Mapping[str, object],
    path: Path,
    from_file: Mapping[str, object],
) -> str:
    """Where the value that won was given, the value, and what is wanted instead."""
    row = ROWS[str(error["loc"][0])]
    shown = (lambda value: "...") if row.is_secret else repr
    if row.name in flags:
        given = f"{row.flag}={shown(flags[row.name])}"
    elif os.environ.get(row.variable):
        given = f"{row.variable}={shown(os.environ[row.variable])}"
    else:
        given = f"{path}: {row.name} = {shown(from_file[row.name])}"
    return f"{given}: want {row.wanted}"


def _check_together(settings: Settings) -> None:
    wrong = []
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing, there = ("tls_key", "tls_cert") if settings.tls_cert else ("tls_cert", "tls_key")
        wrong.append(f"{missing} is not set: want a path, since {there} is set")
    if settings.tls_client_ca and not settings.tls_cert:
        wrong.append("tls_cert is not set: want a path, since tls_client_ca is set")
    for name in ("tls_cert", "tls_key", "tls_client_ca", "hops_files", "dimension_files"):
        value = getattr(settings, name)
        for path in value if isinstance(value, tuple) else (value,) if value else ():
            if not path.is_file():
                wrong.append(f"{name}={str(path)!r}: want a file that exists")
    wrong += _wrong_address(settings.state_url)
    if not re.fullmatch(r"[a-z0-9_]{0,32}", settings.pair):
        wrong.append(f"pair={settings.pair!r}: want at most 32 of a-z, 0-9 and _")
    if settings.pair and not settings.state_url:
        wrong.append("state_url is not set: want a PostgreSQL database, since pair is set")
    if wrong:
        raise SettingsError(*wrong)


def _wrong_address(url: str) -> list[str]:
    """One line, or none. The address is not shown: it may hold a password."""
    if not url:
        return []
    from tailburn.engine.store.state.address import parse_address  # SQLAlchemy delays a start

    try:
        parse_address(url)
    except ValueError as error:
        return [f"state_url: {error}"]
    return []
