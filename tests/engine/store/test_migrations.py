"""The schema in both kinds of database: of the models, up and down with rows, never a newer one."""

import subprocess
import sys
from typing import Any, cast

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import BLANK_SCHEMA, Connection, MetaData, Table, inspect, select, text

from tailburn.engine.store.state.database import State, version_at
from tailburn.engine.store.state.models import Base
from tailburn.engine.store.state.place import place_of
from tailburn.engine.store.state.schema import NEWEST, StateError, alembic_config
from tests.engine.store.homes import Home

ALERT = {
    "alertname": "TailburnBudgetBurn",
    "slo": "chat",
    "objective": "availability",
    "severity": "page",
    "long": "1h",
    "short": "5m",
    "by": '{"model": "m"}',
}
OBJECTIVE = {"slo": "chat", "objective": "ttft_p95", "definition": "0badcafe"}
ROWS: dict[str, dict[str, Any]] = {
    "tokens": {
        "id": "0a",
        "name": "ci",
        "tenant": "acme",
        "scopes": "read",
        "hash": bytes(range(32)),
        "created_ns": 2**62 + 1,
        "last_used_ns": None,
        "revoked_ns": None,
    },
    "shown_series": {**OBJECTIVE, "by": "{}", "shown_ns": 7},
    "slo_versions": {**OBJECTIVE, "document": "{}", "first_seen_ns": 11, "retired_ns": None},
    "alert_states": {
        **ALERT,
        "status": "firing",
        "since_ns": 13,
        "active_since_ns": 12,
        "value": 0.25,
        "why": "25 % bad",
    },
    "alert_flips": {
        **ALERT,
        "id": 17,
        "old": "inactive",
        "new": "firing",
        "at_ns": 13,
        "value": 0.25,
        "reason": "25 % bad",
        "delivered_ns": None,
    },
    "evaluated": {"what": "alerts", "minute_ns": 60},
    "covered": {"begin_ns": 0, "end_ns": 60},
    "incidents": {
        "id": 19,
        "key": "0a1b",
        "severity": "page",
        "life": "acknowledged",
        "where": '{"model": "m"}',
        "owner": "ada",
        "opened_ns": 13,
        "quiet_ns": None,
        "resolved_ns": None,
        "reopened": 1,
    },
    "incident_alerts": {
        **ALERT,
        "incident_id": 19,
        "number": 0,
        "began_ns": 13,
        "ended_ns": None,
    },
    "incident_events": {
        "id": 23,
        "incident_id": 19,
        "at_ns": 13,
        "what": "opened",
        "who": "",
        "text": "25 % bad",
    },
    "deliveries": {
        "id": 29,
        "incident_id": 19,
        "message": "0a1b-0-page-trigger-hook",
        "channel": "hook",
        "what": "trigger",
        "severity": "page",
        "page": "{}",
        "at_ns": 13,
        "decided_unix_ns": 14,
        "due_unix_ns": 14,
        "tries": 2,
        "delivered_unix_ns": None,
        "error": "503",
    },
    "silences": {
        "id": 31,
        "matchers": "[]",
        "starts_unix_ns": 1,
        "ends_unix_ns": 2,
        "who": "ada",
        "why": "maintenance",
        "origin": None,
    },
    "changes": {
        "id": 37,
        "key": "0c",
        "tenant": "acme",
        "at_ns": 12,
        "kind": "deploy",
        "what": "vllm",
        "old": "0.32.0",
        "new": "0.33.0",
        "where": "{}",
        "who": "ci",
        "link": "",
    },
    "leases": {
        "what": "paging",
        "holder": "0d",
        "term": 3,
        "taken_up_term": 2,
        "until_unix_ns": 41,
    },
    "services": {
        "id": "0d",
        "name": "a:9464",
        "began_unix_ns": 37,
        "seen_unix_ns": 40,
        "evaluated_ns": None,
        "covered_ratio": 0.5,
    },
}


def test_migrations_make_the_tables_of_the_models(database: State) -> None:
    with database.reading() as session:
        context = MigrationContext.configure(
            session.connection(), opts={"compare_type": True, "compare_server_default": True}
        )
        found = compare_metadata(context, _tables())
    of_hashes = {f"uq_{name}" for name in ("alert_states", "shown_series")}
    assert {(what, index.name) for what, index in found} <= {("remove_index", n) for n in of_hashes}


def test_the_newest_migration_is_the_one_that_a_start_looks_for(database: State) -> None:
    with database.reading() as session:
        config = alembic_config(session.connection())
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_a_start_with_nothing_to_migrate_does_not_load_alembic(home: Home) -> None:
    home.open().close()
    program = (
        "import sys; from tests.engine.store.homes import opened;"
        " opened(*sys.argv[1:]).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, *home.arguments]).returncode == 0


def test_each_step_down_and_up_keeps_the_rows_of_the_tables_that_stay(database: State) -> None:
    tables = _tables().tables
    assert ROWS.keys() == tables.keys()
    with database.writing() as session:
        connection = session.connection()
        config = alembic_config(connection)
        for name, row in ROWS.items():
            connection.execute(tables[name].insert(), row)
        kept = set(ROWS)
        steps = list(ScriptDirectory.from_config(config).walk_revisions())

        for step in steps:
            command.downgrade(config, str(step.down_revision or "base"))
            kept &= tables_of(connection)
            assert rows_of(connection) == _kept(connection, kept)
        assert kept == set()

        for step in reversed(steps):
            command.upgrade(config, step.revision)
            for name in _after_those_they_name(tables_of(connection) - kept):
                table = Table(name, MetaData(), autoload_with=connection)
                row = {column.name: ROWS[name][column.name] for column in table.columns}
                connection.execute(table.insert(), row)
                kept.add(name)
            assert rows_of(connection) == _kept(connection, kept)
    assert kept == set(ROWS)


def _kept(connection: Connection, names: set[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of these tables, without what no column has yet."""
    looked_at = inspect(connection)
    return {
        name: [{each["name"]: ROWS[name][each["name"]] for each in looked_at.get_columns(name)}]
        for name in names
    }


def _after_those_they_name(names: set[str]) -> list[str]:
    """Rows that name others' come after them."""
    return [table.name for table in Base.metadata.sorted_tables if table.name in names]


def _tables() -> MetaData:
    """All tables as they are where nothing is shared with another service."""
    found = MetaData(naming_convention=Base.metadata.naming_convention)
    blank: Any = BLANK_SCHEMA
    for table in Base.metadata.sorted_tables:
        table.to_metadata(found, schema=cast("Any", None), referred_schema_fn=lambda *of: blank)
    return found


def tables_of(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names()) - {"alembic_version"}


def rows_of(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Every table that is there, with its rows as they are."""
    found = MetaData()
    found.reflect(connection)
    return {
        name: [dict(row) for row in connection.execute(select(table)).mappings()]
        for name, table in found.tables.items()
        if name != "alembic_version"
    }


def test_a_schema_from_the_future_is_not_touched(home: Home) -> None:
    database = home.open()
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        session.execute(text("DROP TABLE covered"))
    database.close()

    with pytest.raises(StateError, match="its schema '9999' is newer than this"):
        home.open()
    assert version_at(place_of(home.store, home.url)) == "9999"
