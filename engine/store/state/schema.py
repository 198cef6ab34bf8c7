"""Schema versions: Alembic migrations shipped with the code and run when a database opens."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS: Final = Path(__file__).parent / "migrations"

NEWEST: Final = "0006"
"""The newest migration. A schema that has it needs no Alembic, whose loading delays a start."""


class StateError(Exception):
    """The state database can't be used; the message says which, why and what to do."""


def migrate(connection: Connection, name: str) -> None:
    """Bring the schema to the newest version, inside the caller's transaction.

    Raises StateError for a schema that this version of the code doesn't know.
    """
    current = current_version(connection)
    if current == NEWEST:
        return
    from alembic import command
    from alembic.script import ScriptDirectory

    config = alembic_config(connection)
    known = {s.revision for s in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise StateError(
            f"{name}: its schema {current!r} is newer than this version of tailburn knows "
            f"({NEWEST!r} at most); start the newer version, or restore an older copy"
        )
    command.upgrade(config, NEWEST)


def alembic_config(connection: Connection) -> "Config":
    """For `alembic.command`: the shipped migrations on an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def current_version(connection: Connection) -> str | None:
    """The migration that Alembic noted last; None in a new place."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found
