"""Incidents of a service: made of what burns, shown and acted on by command and over HTTP."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.engine.incidents import Life
from tests.app.conftest import Run
from tests.app.lives import Lives
from tests.app.slos import CHAT
from tests.app.test_web import ALPHA, OWN, Web

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)


def keeping(lives: Lives) -> IncidentKeeping:
    kept = IncidentKeeping(lives.slos, lives.database, {}, lambda: lives.now_ns)
    kept.step()
    return kept


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    """Seven hours that were well, and ten minutes in which all was bad."""
    lives = Lives(tmp_path / "store", [ONE], healthy=420)
    lives.minutes(10, 1.0)
    return lives


def test_what_burns_is_one_incident_until_it_has_been_quiet_for_a_while(lives: Lives) -> None:
    (incident,) = keeping(lives).incidents.all()
    assert (incident.id, incident.life, incident.severity) == (1, Life.OPEN, "page")
    assert {m.key.alertname for m in incident.members} >= {"TailburnBudgetBurn"}
    assert len(incident.members) > 1

    lives.minutes(80, 0.0)
    (incident,) = keeping(lives).incidents.all()
    assert incident.life is Life.RESOLVED
    assert {e.what for e in keeping(lives).incidents.timeline(1)} >= {"opened", "ended", "resolved"}


def test_a_kill_at_any_minute_makes_no_other_incidents(tmp_path: Path) -> None:
    told = []
    for kills in (False, True):
        lives = Lives(tmp_path / str(kills), [ONE], healthy=420)
        for minute in range(100):
            lives.minute(1.0 if 5 <= minute < 15 or 30 <= minute < 35 else 0.0)
            if kills and minute % 3 == 0:
                lives.restart()
            if not kills or minute % 7 == 0:
                keeping(lives)
        kept = keeping(lives).incidents
        (incident,) = [replace(i, key="") for i in kept.all()]
        told.append((incident, kept.timeline(1)))
    assert told[0] == told[1]


def shown(run: Run, lives: Lives, *arguments: object) -> list[dict[str, Any]]:
    answer = run("incidents", *arguments, "--store", lives.store.root, "--json")
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_commands_show_it_and_take_it_to_its_end(run: Run, lives: Lives) -> None:
    keeping(lives)
    (row,) = shown(run, lives)
    assert (row["id"], row["life"], row["owner"]) == (1, "open", "")
    assert shown(run, lives, "ack", 1, "--who", "ada")[0]["owner"] == "ada"
    shown(run, lives, "note", 1, "the gateway holds streams", "--who", "ada")
    shown(run, lives, "own", 1, "grace", "--who", "ada")
    assert shown(run, lives, "mitigate", 1, "rolled back", "--who", "ada")[0]["owner"] == "grace"
    assert shown(run, lives, "resolve", 1, "--who", "ada")[0]["life"] == "resolved"
    assert shown(run, lives) == []
    assert [row["id"] for row in shown(run, lives, "--all")] == [1]
    assert shown(run, lives, "reopen", 1, "--who", "ada")[0]["reopened"] == 1
    (whole,) = shown(run, lives, "show", 1)
    people = [(e["what"], e["who"], e["text"]) for e in whole["timeline"] if e["who"]]
    assert people[1] == ("note", "ada", "the gateway holds streams")
    assert [what for what, *_ in people] == [
        "acknowledged", "note", "owner", "mitigated", "resolved", "reopened",
    ]  # fmt: skip
    drawn = run("incidents", "show", 1, "--store", lives.store.root).out
    assert "the gateway holds streams" in drawn and "TailburnBudgetBurn" in drawn


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ack", 7], "no incident 7"),
        (["show", 7], "no incident 7"),
        (["note", 1, " "], "incident 1: note: says nothing; want a text"),
        (["reopen", 1], "incident 1: it is open; reopen wants resolved or mitigated"),
    ],
)
def test_what_can_not_be_done_says_why(
    run: Run, lives: Lives, arguments: list[object], says: str
) -> None:
    keeping(lives)
    answer = run("incidents", *arguments, "--store", lives.store.root)
    assert (answer.code, answer.err) == (2, f"tailburn: {says}\n")


def test_a_store_that_no_service_ran_on_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    answer = run("incidents", "--store", tmp_path)
    assert answer.code == 0 and "no service ran with --slo on this store" in answer.err
    answer = run("incidents", "ack", 1, "--store", tmp_path)
    assert answer.code == 2 and "no service with SLOs ever ran on this store" in answer.err


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """A service with an incident of everybody's, and one of tenant alpha's."""
    slos = [replace(ONE, labels={"team": "all"}), replace(OWN, labels={"team": "alpha"})]
    lives = Lives(tmp_path, slos, healthy=420)
    lives.minutes(10, 1.0)
    keeping(lives)
    lives.database.close()
    web = Web(tmp_path, ONE, OWN)
    yield web
    web.state.close()


@pytest.mark.anyio
async def test_they_are_paged_by_number_the_newest_first(web: Web) -> None:
    every = [row["id"] for row in (await web.get("/api/incidents")).json()]
    assert len(every) == 2
    (last,) = (await web.get("/api/incidents?limit=1")).json()
    (first,) = (await web.get(f"/api/incidents?limit=1&before={last['id']}")).json()
    assert [first["id"], last["id"]] == every
    assert (await web.get(f"/api/incidents?before={first['id']}")).json() == []


@pytest.mark.anyio
async def test_what_is_wrong_is_a_problem_with_its_details(web: Web) -> None:
    for path, status in (("/api/incidents/99", 404), ("/api/incidents?limit=x", 422),
                         ("/api/tails?since=never", 400), ("/api/nothing", 404)):  # fmt: skip
        answer = await web.get(path)
        told = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.status_code == told["status"] == status and told["detail"] and told["title"]
    unfit = await web.get("/api/incidents?limit=x")
    assert unfit.json()["errors"][0]["where"] == "query.limit"
    refused = await web.get("/api/incidents", None)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (
        401, 'Bearer realm="tailburn"',
    )  # fmt: skip


@pytest.mark.anyio
async def test_it_is_shown_and_acted_on_over_http(web: Web) -> None:
    rows = (await web.get("/api/incidents")).json()
    assert sorted(row["slos"] for row in rows) == [["chat"], ["own"]]
    one = f"/api/incidents/{rows[0]['id']}"
    answer = await web.post(f"{one}/ack", {"who": "ada", "text": "on it"})
    assert (answer.status_code, answer.json()["life"]) == (200, "acknowledged")
    assert (await web.get(one)).json()["timeline"][-1]["text"] == "on it"
    again = await web.post(f"{one}/ack", {"who": "ada"})
    assert again.status_code == 409
    assert "it is acknowledged; ack wants open" in again.json()["detail"]


@pytest.mark.anyio
async def test_a_tenant_sees_its_own_alone(web: Web) -> None:
    (own,) = (await web.get("/api/incidents", ALPHA)).json()
    assert own["slos"] == ["own"]
    other = 3 - own["id"]
    assert (await web.get(f"/api/incidents/{other}", ALPHA)).status_code == 404
    acked = await web.post(f"/api/incidents/{own['id']}/ack", {"who": "al"}, ALPHA)
    assert acked.status_code == 403


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/incidents/9/ack", {"who": "ada"}, 404),
        ("/api/incidents/1/explode", {"who": "ada"}, 422),
        ("/api/incidents/1/ack", {}, 422),
        ("/api/incidents/1/ack", {"who": "x" * 129}, 422),
        ("/api/incidents/1/note", {"who": "ada", "text": "x" * 4_001}, 422),
        ("/api/incidents/1/note", {"who": "ada", "more": 1}, 422),
        ("/api/incidents/1/note", {"who": "ada"}, 409),
        (f"/api/incidents/{2**70}/ack", {"who": "ada"}, 422),
    ],
)
async def test_what_is_not_fit_is_refused(
    web: Web, path: str, body: dict[str, Any], status: int
) -> None:
    assert (await web.post(path, body)).status_code == status
