"""A pair as people see it: by `tailburn page who` and the doctor."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tailburn.app.pairing import Pairing
from tailburn.engine.evaluation.windows import MINUTE_NS
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import open_state
from tailburn.engine.store.state.place import place_of
from tests.app.conftest import Run
from tests.postgres import Server

DAY_NS = 1_440 * MINUTE_NS
NOW_NS = 20_000 * DAY_NS


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def service(store: Path, postgres: Server, clock: Clock, counted_h: int) -> Iterator[Pairing]:
    """One whose store has the last hours."""
    state = open_state(place_of(store, postgres.url, "prod"))
    since_ns = NOW_NS - counted_h * 60 * MINUTE_NS
    Alerts(state).write(NOW_NS, {}, {}, [], since_ns)
    yield Pairing(f"{store.name}:9464", state, lambda: NOW_NS, clock)
    state.close()


@pytest.fixture
def flags(tmp_path: Path, postgres: Server) -> list[object]:
    config = tmp_path / "tailburn.toml"
    lines = [f'store = "{tmp_path / "one"}"', f'state_url = "{postgres.url}"', 'pair = "prod"']
    config.write_text("\n".join(lines))
    return ["--config", config]


def _told(run: Run, flags: list[object]) -> dict[str, Any]:
    rows = [json.loads(line) for line in run("doctor", "--json", *flags).out.splitlines()]
    (row,) = [row for row in rows if row["subject"] == "pair"]
    found: dict[str, Any] = row
    return found


def test_who_tells_people_and_how_complete_each_store_is(
    run: Run, tmp_path: Path, postgres: Server, flags: list[object]
) -> None:
    clock = Clock()
    with (
        service(tmp_path / "one", postgres, clock, 24) as one,
        service(tmp_path / "two", postgres, clock, 6) as two,
    ):
        assert _told(run, flags)["seen"] == "prod: no service tells people"
        one.step()
        assert _told(run, flags)["state"] == "warn"
        two.step()
        assert (one.leads(), two.leads()) == (True, False)
        answer = run("page", "who", "--json", *flags)
        drawn = run("page", "who", *flags)
        well = _told(run, flags)
        clock.now_s += 11
        assert not one.leads(), "sooner than another may take it"
        one.close()
        two.step()
        assert two.leads()
    rows = [json.loads(line) for line in answer.out.splitlines()]
    assert [(r["name"], r["state"], r["covered_24h_ratio"]) for r in rows] == [
        ("one:9464", "tells people", 1.0), ("two:9464", "stands by", 0.25),
    ]  # fmt: skip
    assert "25 % of 24 h" in drawn.out
    assert well["state"] == "ok" and "two:9464 stands by, its store has 25 %" in well["seen"]


def test_a_service_without_a_standby_says_so(run: Run, tmp_path: Path) -> None:
    open_state(place_of(tmp_path)).close()
    answer = run("page", "who", "--store", tmp_path)
    assert (answer.code, answer.out) == (0, "") and "has no standby" in answer.err


def test_a_pair_wants_a_database_and_a_plain_name(run: Run) -> None:
    answer = run("serve", "--pair", "Prod-1")
    assert answer.code == 2
    assert "pair='Prod-1': want at most 32 of a-z, 0-9 and _" in answer.err
    assert "state_url is not set: want a PostgreSQL database, since pair is set" in answer.err
