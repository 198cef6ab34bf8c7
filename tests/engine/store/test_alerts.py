"""States of alerts, their changes and their minute: together, or not at all."""

import subprocess
import sys
from dataclasses import replace

from alembic import command
from sqlalchemy import text

from tailburn.engine.evaluation import AlertKey, Flip, State, Status
from tailburn.engine.store.state.alerts import Alerts, Standing
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.models import Token
from tailburn.engine.store.state.schema import NEWEST, alembic_config
from tailburn.engine.store.state.shown import SeriesKey, Shown
from tailburn.engine.store.state.tokens import Tokens
from tests.engine.store.homes import Home

PAGE = AlertKey("TailburnBudgetBurn", "chat", "availability", "page", "1h", "5m")
TICKET = PAGE._replace(
    severity="ticket", long="3d", short="6h", by=(("model", 'a"b'), ("gpu", "0"))
)
FIRING = State(Status.FIRING, 60, 60, 0.25, "25 % bad")
PENDING = State(Status.PENDING, 120, 120, None, "not measured")


def began(key: AlertKey, state: State) -> Flip:
    return Flip(key, Status.INACTIVE, state.status, state.since_ns, state.value, state.why)


def test_nothing_was_ever_evaluated(database: Database) -> None:
    assert Alerts(database).standing() == Standing(None, {})


def test_states_come_back_as_they_were_written(database: Database) -> None:
    states = {PAGE: FIRING, TICKET: PENDING}

    Alerts(database).write(120, {}, states, [began(PAGE, FIRING), began(TICKET, PENDING)])

    assert Alerts(database).standing() == Standing(120, states)
    assert Alerts(database).flips(0) == [began(PAGE, FIRING), began(TICKET, PENDING)]


def test_a_state_that_changed_takes_the_place_of_the_old_and_one_that_ended_goes(
    database: Database,
) -> None:
    alerts = Alerts(database)
    first = {PAGE: FIRING, TICKET: PENDING}
    alerts.write(120, {}, first, [])

    second = {TICKET: replace(PENDING, value=0.5, status=Status.FIRING)}
    alerts.write(180, first, second, [])

    assert alerts.standing() == Standing(180, second)


def test_the_newest_changes_are_given_oldest_first(database: Database) -> None:
    flips = [replace(began(PAGE, FIRING), at_ns=at_ns) for at_ns in (30, 10, 20, 40)]
    Alerts(database).write(60, {}, {}, flips)

    assert [flip.at_ns for flip in Alerts(database).flips(20)] == [20, 30, 40]
    assert [flip.at_ns for flip in Alerts(database).flips(0, most=2)] == [30, 40]


def test_each_life_of_the_service_is_a_stretch_that_grows(database: Database) -> None:
    alerts = Alerts(database)
    for minute_ns, since_ns in ((100, None), (120, 120), (180, 120), (240, 120), (400, 360)):
        alerts.write(minute_ns, {}, {}, [], since_ns)

    assert alerts.covered(0) == [(120, 240), (360, 400)]
    assert alerts.covered(240) == [(360, 400)]


_KILLED = """
import os, signal, sys
from tailburn.engine.store.state.alerts import Alerts
from tests.engine.store.homes import opened
from tests.engine.store.test_alerts import FIRING, PAGE, TICKET, began

def flips():
    yield began(TICKET, FIRING)
    os.kill(os.getpid(), signal.SIGKILL)

alerts = Alerts(opened(*sys.argv[1:]))
alerts.write(180, alerts.standing().states, {TICKET: FIRING}, flips())
"""


def test_a_kill_between_states_and_changes_leaves_the_minute_before(home: Home) -> None:
    database = home.open()
    Alerts(database).write(120, {}, {PAGE: FIRING}, [began(PAGE, FIRING)])
    database.close()

    killed = subprocess.run([sys.executable, "-c", _KILLED, *home.arguments])

    assert killed.returncode == -9
    database = home.open()
    assert Alerts(database).standing() == Standing(120, {PAGE: FIRING})
    assert Alerts(database).flips(0) == [began(PAGE, FIRING)]
    database.close()


def older(home: Home) -> None:
    """A database as the version before made it, with rows."""
    database = home.open()
    token = Token(id="0a", name="ci", tenant="t", scopes="read", hash=b"0" * 32, created_ns=1)
    Tokens(database).add(token)
    Shown(database).add([SeriesKey("chat", "availability", "0badcafe", ())], 7)
    with database.writing() as session:
        command.downgrade(alembic_config(session.connection()), "0002")
    database.close()


def test_an_older_database_keeps_its_rows_and_gets_the_new_tables(home: Home) -> None:
    older(home)

    database = home.open()

    assert [token.name for token in Tokens(database).all()] == ["ci"]
    assert len(Shown(database).all()) == 1
    assert Alerts(database).standing() == Standing(None, {})
    database.close()


_KILLED_WHILE_MIGRATING = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.engine.store.homes import opened

@event.listens_for(Engine, "after_cursor_execute")
def die(connection, cursor, statement, *rest):
    if "CREATE TABLE alert_flips" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

opened(*sys.argv[1:])
"""


def test_a_kill_in_the_middle_of_a_migration_leaves_the_older_database(home: Home) -> None:
    older(home)

    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_MIGRATING, *home.arguments])

    assert killed.returncode == -9
    database = home.open()
    with database.reading() as session:
        assert session.scalar(text("SELECT version_num FROM alembic_version")) == NEWEST
    assert [token.name for token in Tokens(database).all()] == ["ci"]
    assert Alerts(database).standing() == Standing(None, {})
    database.close()
