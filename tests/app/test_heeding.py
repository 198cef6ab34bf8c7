"""What an Alertmanager says is heeded, and what it should not say does no harm."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tailburn.alerts.pager.alertmanager import ALERTNAME
from tailburn.alerts.pager.http import MOST_READ_BYTES, Api
from tailburn.alerts.pager.page import DeliveryError
from tailburn.alerts.silences.theirs import TheirSilences
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.paging.heeding import ACK_LASTS_NS, LOOKS_NS, Heeding
from tailburn.engine.incidents import Happened, Life
from tests.app.lives import Lives
from tests.app.test_silences import ONE
from tests.app.test_web import ALPHA, Web

HOUR_NS = 3_600 * 10**9


class There:
    """An Alertmanager on paper."""

    def __init__(self) -> None:
        self.silences: list[dict[str, Any]] = []
        self.answers: Callable[[httpx.Request], httpx.Response] = self.as_it_should

    def silence(self, id: str, comment: str, ends_ns: int, who: str = "bob") -> None:
        ends = datetime.fromtimestamp(ends_ns / 1e9, UTC).isoformat()
        self.silences = [one for one in self.silences if one["id"] != id]
        self.silences.append(
            {
                "id": id, "startsAt": "2026-01-01T00:00:00.123Z", "endsAt": ends,
                "createdBy": who, "comment": comment, "status": {"state": "active"},
                "matchers": [{"name": "incident", "value": "1", "isRegex": False}],
            }
        )  # fmt: skip

    def end(self, id: str) -> None:
        self.silences = [one for one in self.silences if one["id"] != id]

    def handle(self, request: httpx.Request) -> httpx.Response:
        return self.answers(request)

    def as_it_should(self, request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            self.end(request.url.path.rpartition("/")[2])
            return httpx.Response(200)
        if request.method == "POST":
            made = json.loads(request.content)
            id = made.get("id") or f"ours-{len(self.silences)}"
            self.end(id)
            self.silences.append({**made, "id": id, "status": {"state": "active"}})
            return httpx.Response(200, json={"silenceID": id})
        if request.url.path.endswith("/alerts"):
            labels = {"alertname": ALERTNAME, "incident": "1"}
            silenced = {"silencedBy": [one["id"] for one in self.silences]}
            return httpx.Response(200, json=[{"labels": labels, "status": silenced}])
        return httpx.Response(200, json=self.silences)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.lives = Lives(folder / "store", [ONE], healthy=420)
        self.keeping = IncidentKeeping(
            self.lives.slos, self.lives.database, {}, lambda: self.lives.now_ns
        )
        self.lives.minutes(10, 1.0)
        self.keeping.step()
        self.there = There()
        api = Api("http://am:9093/", httpx.MockTransport(self.there.handle))
        theirs = TheirSilences("http://am:9093/", ALERTNAME, api)
        self.heeding = Heeding(theirs, self.keeping, lambda: self.lives.now_ns)
        self.wall_ns = self.lives.now_ns

    def look(self) -> None:
        self.wall_ns += LOOKS_NS
        self.heeding.step(self.wall_ns)

    def life(self) -> Life:
        (incident,) = self.keeping.incidents.all()
        return incident.life

    @property
    def mirrored(self) -> list[tuple[str, int]]:
        return [(s.why, s.ends_unix_ns) for s in self.keeping.silences.all(self.wall_ns)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_silence_holds_here_as_long_as_it_does_there(scene: Scene) -> None:
    ends_ns = (scene.wall_ns // HOUR_NS + 2) * HOUR_NS
    scene.there.silence("a", "maintenance", ends_ns)
    scene.look()
    scene.look()
    assert scene.mirrored == [("maintenance", ends_ns)]
    notes = [e for e in scene.keeping.incidents.timeline(1) if e.what is Happened.NOTE]
    assert len(notes) == 1 and notes[0].who == "bob"

    scene.there.silence("a", "maintenance", ends_ns + HOUR_NS)
    scene.look()
    assert scene.mirrored == [("maintenance", ends_ns + HOUR_NS)]
    scene.there.end("a")
    scene.look()
    assert scene.mirrored == []


def test_one_that_was_ended_here_does_not_come_back(scene: Scene) -> None:
    scene.there.silence("a", "maintenance", scene.wall_ns + HOUR_NS)
    scene.look()
    (silence,) = scene.keeping.silences.all(scene.wall_ns)
    scene.keeping.silences.end(silence.id or 0, scene.wall_ns)
    scene.look()
    assert scene.mirrored == []


def test_an_acknowledgement_there_is_one_here_and_is_held_until_it_is_over(scene: Scene) -> None:
    scene.there.silence("a", "ACK! This alert was acknowledged using karma", scene.wall_ns)
    scene.look()
    assert scene.life() is Life.ACKNOWLEDGED and scene.mirrored == []
    scene.look()
    ours = [one["comment"] for one in scene.there.silences if one["id"] != "a"]
    assert ours == ["ACK! in tailburn, incident 1"]
    scene.there.end("a")
    scene.wall_ns += ACK_LASTS_NS - 2 * LOOKS_NS
    scene.look()
    assert len(scene.there.silences) == 1, "held on"
    scene.lives.minutes(60, 0.0)
    scene.keeping.step()
    scene.look()
    assert scene.life() is Life.RESOLVED and scene.there.silences == []


ODD = {
    "down": lambda request: (_ for _ in ()).throw(httpx.ConnectError("refused")),
    "500": lambda request: httpx.Response(500, text="oops"),
    "html": lambda request: httpx.Response(200, text="<html>"),
    "other json": lambda request: httpx.Response(200, json={"silences": []}),
    "odd rows": lambda request: httpx.Response(200, json=[{"labels": 7}, None]),
    "endless": lambda request: httpx.Response(200, content=b"[" * (MOST_READ_BYTES + 1)),
}


@pytest.mark.parametrize("way", ODD)
def test_one_that_answers_otherwise_is_an_error_and_changes_nothing(scene: Scene, way: str) -> None:
    scene.there.silence("a", "maintenance", scene.wall_ns + HOUR_NS)
    scene.look()
    scene.there.answers = ODD[way]
    with pytest.raises(DeliveryError, match="http://am:9093: "):
        scene.look()
    assert len(scene.mirrored) == 1 and scene.life() is Life.OPEN


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """A service with one incident."""
    lives = Lives(tmp_path, [ONE], healthy=420)
    lives.minutes(10, 1.0)
    IncidentKeeping(lives.slos, lives.database, {}, lambda: lives.now_ns).step()
    lives.database.close()
    web = Web(tmp_path, ONE)
    yield web
    web.state.close()


def notification(*alerts: tuple[str, dict[str, str]], receiver: str = "people") -> dict[str, Any]:
    told = [{"status": status, "labels": labels, "startsAt": "x"} for status, labels in alerts]
    return {"version": "4", "status": "firing", "receiver": receiver, "alerts": told}


OURS = {"alertname": ALERTNAME, "incident": "1"}


@pytest.mark.anyio
async def test_whom_it_told_stands_in_the_timeline_once(web: Web) -> None:
    foreign = ("firing", {"alertname": "DiskFull", "incident": "1"})
    unknown = ("firing", {**OURS, "incident": "9" * 30})
    told = notification(("firing", OURS), foreign, unknown, ("firing", {**OURS, "incident": "7"}))
    answer = await web.post("/api/alertmanager", told)
    assert answer.json() == {"alerts": 4, "incidents": 1}
    heard = web.incidents.heard
    await web.post("/api/alertmanager", told)
    worse = notification(("resolved", OURS), ("firing", OURS))
    await web.post("/api/alertmanager", worse)
    await web.post("/api/alertmanager", notification(("resolved", OURS)))
    assert web.incidents.heard == heard + 3
    timeline = web.incidents.incidents.timeline(1)
    assert [e.text for e in timeline if e.what is Happened.TOLD] == [
        "trigger by Alertmanager, receiver people", "resolve by Alertmanager, receiver people",
    ]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("odd", [{}, {"receiver": "x"}, {"receiver": 1, "alerts": []}, [], "x"])
async def test_what_is_no_notification_is_refused(web: Web, odd: Any) -> None:
    assert (await web.post("/api/alertmanager", odd)).status_code == 422


@pytest.mark.anyio
async def test_who_may_only_read_tells_nothing(web: Web) -> None:
    told = notification(("firing", OURS))
    assert (await web.post("/api/alertmanager", told, ALPHA)).status_code == 403
    assert not [e for e in web.incidents.incidents.timeline(1) if e.what is Happened.TOLD]
