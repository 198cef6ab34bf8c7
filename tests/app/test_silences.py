"""Silences: what is held back, told once they end, or never told; by command and over HTTP."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tailburn.alerts.pager.page import Page
from tailburn.alerts.pager.pager import Pager
from tailburn.alerts.silences.matching import new_silence
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.paging.silencing import OVER
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.deliveries import Delivery
from tests.app.conftest import Run
from tests.app.lives import Lives
from tests.app.slos import CHAT
from tests.app.test_web import ALPHA, Web

ONE = replace(CHAT, clocks={}, availability_ratio=0.99, labels={"team": "serving"})
WAYS = {Severity.PAGE: ["hook"], Severity.TICKET: []}
HOUR = 3_600 * 10**9


@dataclass
class Hook:
    name: str = "hook"
    told: list[What] = field(default_factory=list)

    def send(self, page: Page) -> None:
        self.told.append(page.what)

    def close(self) -> None:
        pass


@dataclass
class Scene:
    """A service whose budget burns, and who is told of it by the time of the wall."""

    lives: Lives
    keeping: IncidentKeeping
    hook: Hook
    pager: Pager

    def silence(self, *matchers: str, hours: float = 1.0) -> int:
        now_ns = self.lives.now_ns
        made = new_silence(matchers, now_ns, now_ns + round(hours * HOUR), "ada", "known")
        number = self.keeping.silences.add(made).id
        assert number is not None
        return number

    def minutes(self, count: int, bad_ratio: float) -> None:
        for _ in range(count):
            self.lives.minute(bad_ratio)
            self.keeping.step()
            self.tell()

    def tell(self) -> None:
        while self.pager.step(self.lives.now_ns):
            pass


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    lives = Lives(tmp_path / "store", [ONE], healthy=420)
    keeping = IncidentKeeping(lives.slos, lives.database, WAYS, lambda: lives.now_ns)
    hook = Hook()

    def word(delivery: Delivery) -> Page:
        return Page("k", delivery.message, delivery.what, delivery.severity, "t", "t", 0, 0)

    pager = Pager(hook, keeping.deliveries, word, lambda: lives.now_ns, keeping.silencing.wanted)
    return Scene(lives, keeping, hook, pager)


def test_what_is_still_open_when_the_silence_ends_is_told_then(scene: Scene) -> None:
    scene.silence("team=serving", hours=0.5)
    scene.minutes(20, 1.0)
    assert scene.hook.told == [] and len(scene.keeping.incidents.all()) == 1
    scene.minutes(20, 1.0)
    assert scene.hook.told == [What.TRIGGER]


def test_a_silence_that_is_ended_early_lets_go_at_once(scene: Scene) -> None:
    number = scene.silence("slo=chat", hours=24)
    scene.minutes(20, 1.0)
    scene.keeping.silences.end(number, scene.lives.now_ns)
    scene.tell()
    assert scene.hook.told == [What.TRIGGER]


def test_what_was_over_before_is_told_to_nobody_and_stands_in_the_timeline(scene: Scene) -> None:
    scene.silence("slo=chat", hours=3)
    scene.minutes(10, 1.0)
    scene.minutes(200, 0.0)
    assert scene.hook.told == []
    said = [event.text for event in scene.keeping.incidents.timeline(1)]
    assert [text for text in said if OVER in text] == [
        f"trigger by hook: {OVER}", f"resolve by hook: {OVER}",
    ]  # fmt: skip


def test_one_that_was_told_of_before_is_told_to_be_over(scene: Scene) -> None:
    scene.minutes(10, 1.0)
    scene.silence("slo=chat", hours=3)
    scene.minutes(80, 0.0)
    assert scene.hook.told == [What.TRIGGER, What.RESOLVE]


def test_another_s_silence_keeps_nothing_back(scene: Scene) -> None:
    scene.silence("team=search")
    scene.minutes(10, 1.0)
    assert scene.hook.told == [What.TRIGGER]


def test_what_is_over_long_ago_is_forgotten_and_what_is_not_is_kept(scene: Scene) -> None:
    scene.silence("slo=chat", hours=1)
    scene.minutes(10, 1.0)
    scene.minutes(200, 0.0)
    now_ns = scene.lives.now_ns
    for kept_ns, left in ((100 * HOUR, 1), (HOUR // 60, 0)):
        keeping = IncidentKeeping(
            scene.lives.slos, scene.lives.database, WAYS, lambda: now_ns, kept_ns
        )
        keeping.forget()
        assert (len(keeping.incidents.all()), len(keeping.silences.all(0))) == (left, left)


def shown(run: Run, lives: Lives, *arguments: object) -> list[dict[str, Any]]:
    answer = run("silences", *arguments, "--store", lives.store.root, "--json")
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_commands_add_show_and_end_it(run: Run, scene: Scene) -> None:
    lives = scene.lives
    (row,) = shown(
        run, lives, "add", "model=llama", "--for", "2h", "--why", "driver", "--who", "ada"
    )
    assert (row["id"], row["state"], row["matchers"]) == (1, "active", ['model="llama"'])
    assert row["ends_unix_ns"] - row["starts_unix_ns"] == 2 * HOUR
    shown(run, lives, "add", "slo=~chat.*", "--in", "8h")
    assert [r["state"] for r in shown(run, lives)] == ["active", "pending"]
    assert shown(run, lives, "end", 1)[0]["state"] == "ended"
    assert [r["id"] for r in shown(run, lives)] == [2]
    assert [r["id"] for r in shown(run, lives, "--all")] == [1, 2]
    assert "driver" in run("silences", "--all", "--store", lives.store.root).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "model"], "'model': want NAME=VALUE"),
        (["add", "model=~["], "'model=~[': no regular expression"),
        (["add", "model=~.*"], "match what has no label at all"),
        (["add", "model=x", "--for", "soon"], "--for 'soon': want a duration"),
        (["add", "model=x", "--for", "9000h"], "a year later"),
        (["end", 7], "no silence 7"),
    ],
)
def test_what_is_none_says_why(run: Run, scene: Scene, arguments: list[object], says: str) -> None:
    answer = run("silences", *arguments, "--store", scene.lives.store.root)
    assert answer.code == 2 and says in answer.err


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path, ONE)
    yield web
    web.state.close()


@pytest.mark.anyio
async def test_it_is_added_and_ended_over_http(web: Web) -> None:
    ends_ns = time.time_ns() + HOUR
    body = {"matchers": ["model=llama"], "ends_unix_ns": ends_ns, "who": "ada"}
    made = (await web.post("/api/silences", body)).json()
    assert (made["id"], made["state"], made["ends_unix_ns"]) == (1, "active", ends_ns)
    assert [row["id"] for row in (await web.get("/api/silences")).json()] == [1]
    assert (await web.post("/api/silences/1/end", {})).json()["state"] == "ended"
    assert (await web.get("/api/silences")).json() == []
    assert (await web.post("/api/silences/9/end", {})).status_code == 404


@pytest.mark.anyio
async def test_it_holds_for_all_so_one_tenant_neither_sees_nor_makes_it(web: Web) -> None:
    assert (await web.get("/api/silences", ALPHA)).status_code == 403
    assert (await web.post("/api/silences", {}, ALPHA)).status_code == 403


@pytest.mark.anyio
@pytest.mark.parametrize(
    "change",
    [
        {"matchers": []}, {"matchers": ["model"]}, {"matchers": ["model=~("]}, {"ends_unix_ns": 1},
        {"ends_unix_ns": 2**70}, {"who": ""}, {"more": 1}, {"matchers": ["a=b"] * 21},
        {"starts_unix_ns": 2**63 - 1},
    ],
)  # fmt: skip
async def test_what_is_not_fit_is_refused(web: Web, change: dict[str, Any]) -> None:
    body = {"matchers": ["a=b"], "ends_unix_ns": time.time_ns() + HOUR, "who": "ada", **change}
    assert (await web.post("/api/silences", body)).status_code == 422
