"""The state database over years: what is old goes, what is still so stays, over any kill."""

import subprocess
import sys
from dataclasses import replace

from sqlalchemy import func, select

from tailburn.engine.evaluation import AlertKey, Flip, State, Status
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State as Database
from tailburn.engine.store.state.forgetting import Forgetting
from tailburn.engine.store.state.models import Base
from tests.engine.store.homes import Home

DAY_NS = 86_400_000_000_000
KEPT_DAYS = 40
DAYS = 500
LASTING = AlertKey("TailburnTier", "chat", "ttft_p95", "ticket", "1h", "1h", (("model", "a"),))
DAILY = AlertKey("TailburnBudgetBurn", "chat", "availability", "page", "1h", "5m")


def rows(database: Database, table: str) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(Base.metadata.tables[table])) or 0


def changed(key: AlertKey, old: Status, new: Status, at_ns: int) -> Flip:
    return Flip(key, old, new, at_ns, 0.5, f"{old} to {new}")


def one_day(alerts: Alerts, day: int, lasting: State) -> State:
    """One alert fires and ends, another one fires on and is frozen for an hour; a restart."""
    at_ns = day * DAY_NS
    fires = State(Status.FIRING, at_ns, at_ns, 0.5, "bad")
    frozen = replace(lasting, status=Status.FROZEN, since_ns=at_ns)
    freed = replace(lasting, since_ns=at_ns + 60)
    alerts.write(
        at_ns,
        {LASTING: lasting},
        {LASTING: frozen, DAILY: fires},
        [
            changed(DAILY, Status.INACTIVE, Status.FIRING, at_ns),
            changed(LASTING, Status.FIRING, Status.FROZEN, at_ns),
        ],
        at_ns - 10,
    )
    alerts.write(
        at_ns + 60,
        {LASTING: frozen, DAILY: fires},
        {LASTING: freed},
        [
            changed(DAILY, Status.FIRING, Status.INACTIVE, at_ns + 60),
            changed(LASTING, Status.FROZEN, Status.FIRING, at_ns + 60),
        ],
        at_ns - 10,
    )
    return freed


def test_rows_stay_bounded_over_years_and_what_still_fires_keeps_its_begin(
    database: Database,
) -> None:
    alerts, forgetting = Alerts(database), Forgetting(database, KEPT_DAYS * DAY_NS)
    began_ns = DAY_NS
    lasting = State(Status.FIRING, began_ns + 5, began_ns, 0.5, "slow")
    begin = [
        changed(LASTING, Status.INACTIVE, Status.PENDING, began_ns),
        changed(LASTING, Status.PENDING, Status.FIRING, began_ns + 5),
    ]
    alerts.write(began_ns, {}, {LASTING: replace(lasting, status=Status.PENDING)}, begin)
    most = dict.fromkeys(("alert_flips", "covered", "alert_states", "evaluated"), 0)

    for day in range(2, DAYS):
        lasting = one_day(alerts, day, lasting)
        forgetting.forget(day * DAY_NS + 60)
        most = {table: max(count, rows(database, table)) for table, count in most.items()}

    assert most == {
        "alert_flips": 4 * KEPT_DAYS + 2 + 3,
        "covered": KEPT_DAYS + 1,
        "alert_states": 1,
        "evaluated": 1,
    }
    flips = alerts.flips(0)
    assert flips[:2] == begin
    assert (flips[2].new, flips[2].at_ns) == (Status.FROZEN, 2 * DAY_NS)
    assert all(flip.at_ns >= (DAYS - 1 - KEPT_DAYS) * DAY_NS for flip in flips[3:])
    assert alerts.standing().states == {LASTING: lasting}
    assert lasting.active_since_ns == began_ns

    alerts.write(DAYS * DAY_NS, {LASTING: lasting}, {}, [])
    forgetting.forget(DAYS * DAY_NS)
    assert alerts.flips(0)[0].at_ns >= (DAYS - KEPT_DAYS) * DAY_NS, "it is over: so is its begin"


def test_what_fired_before_and_fires_again_keeps_this_begin_alone(database: Database) -> None:
    alerts = Alerts(database)
    state = State(Status.FIRING, 30, 30, 0.5, "bad")
    flips = [
        changed(DAILY, Status.INACTIVE, Status.FIRING, 10),
        changed(DAILY, Status.FIRING, Status.INACTIVE, 20),
        changed(DAILY, Status.INACTIVE, Status.FIRING, 30),
        changed(LASTING, Status.INACTIVE, Status.FIRING, 30),
    ]
    alerts.write(60, {}, {DAILY: state}, flips)

    Forgetting(database, kept_ns=100).forget(200)

    assert alerts.flips(0) == [flips[2]]


def test_what_is_young_stays_to_the_ns(database: Database) -> None:
    alerts = Alerts(database)
    flips = [changed(DAILY, Status.INACTIVE, Status.FIRING, at_ns) for at_ns in (99, 100, 101)]
    alerts.write(150, {}, {}, flips)

    Forgetting(database, kept_ns=50).forget(150)

    assert alerts.flips(0) == flips[1:]


def test_no_call_removes_more_than_its_share(database: Database) -> None:
    alerts = Alerts(database)
    state = State(Status.FIRING, 1, 1, 0.5, "bad")
    begin = changed(DAILY, Status.INACTIVE, Status.FIRING, 1)
    old = [changed(LASTING, Status.INACTIVE, Status.FIRING, at_ns) for at_ns in range(2, 60)]
    alerts.write(60, {}, {DAILY: state}, [begin, *old])
    forgetting = Forgetting(database, kept_ns=100, piece=7, pieces=3)

    left = []
    for _ in range(4):
        forgetting.forget(1_000)
        left.append(rows(database, "alert_flips") - 1)

    assert left == [37, 16, 0, 0]
    assert alerts.flips(0) == [begin]


_KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tailburn.engine.store.state.forgetting import Forgetting
from tests.engine.store.homes import opened

left = int(sys.argv[1])

@event.listens_for(Engine, "after_cursor_execute")
def die(connection, cursor, statement, *rest):
    global left
    if "DELETE FROM alert_flips" in statement:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

Forgetting(opened(*sys.argv[2:]), kept_ns=100, piece=7).forget(1_000)
"""


def test_a_kill_leaves_whole_pieces_and_the_next_call_goes_on(home: Home) -> None:
    database = home.open()
    old = [changed(DAILY, Status.INACTIVE, Status.FIRING, at_ns) for at_ns in range(60)]
    young = changed(DAILY, Status.FIRING, Status.INACTIVE, 950)
    Alerts(database).write(60, {}, {}, [*old, young])
    database.close()

    killed = subprocess.run([sys.executable, "-c", _KILLED, "3", *home.arguments])

    assert killed.returncode == -9
    database = home.open()
    assert Alerts(database).flips(0) == [*old[21:], young]
    Forgetting(database, kept_ns=100, piece=7).forget(1_000)
    assert Alerts(database).flips(0) == [young]
    database.close()
