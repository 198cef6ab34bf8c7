"""Schema versions: Alembic migrations shipped with the code and run when a database opens."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

MIGRATIONS: Final = Path(__file__).parent / "migrations"


class StateError(Exception):
    """The state database can't be used; the message says which, why and what to do."""


def migrate(connection: Connection, name: str) -> None:
    """Bring the schema to the newest version, inside the caller's transaction.

    Raises StateError for a schema that this version of the code doesn't know.
    """
    config = alembic_config(connection)
    scripts = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    head = scripts.get_current_head()
    if current == head:
        return
    if current is not None and current not in {s.revision for s in scripts.walk_revisions()}:
        raise StateError(
            f"{name}: its schema {current!r} is newer than this version of tailburn knows "
            f"({head!r} at most); start the newer version, or restore an older copy of the file"
        )
    command.upgrade(config, "head")


def alembic_config(connection: Connection) -> Config:
    """For `alembic.command`: the shipped migrations on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
