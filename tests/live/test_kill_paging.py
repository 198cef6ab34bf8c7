"""The service, its database and Alertmanager are killed in mid-incident: nobody is told twice."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live.burning import SLO, burn
from tests.live.monitoring import Pager, Program, alertmanager, paging
from tests.live.service import QUICK, Service, until
from tests.postgres import Server, server

pytestmark = [
    pytest.mark.program("prometheus-alertmanager"),
    pytest.mark.program("initdb"),
    pytest.mark.timeout(3_600),
]

CONFIG = """\
route: {{receiver: people, group_by: [incident], group_wait: 0s, group_interval: 1s}}
receivers:
  - name: people
    webhook_configs: [{{url: "{url}", send_resolved: true}}]
"""


@dataclass
class Scene:
    """Three that may be killed, and who is told: directly, and through Alertmanager."""

    service: Service
    postgres: Server
    alertmanager: Program
    directly: Pager
    through: Pager

    def kill_one(self, chance: random.Random, number: int) -> None:
        """By turns; down for a moment, and started again."""
        victims: list[Service | Server | Program] = [
            self.service, self.postgres, self.alertmanager
        ]  # fmt: skip
        victim = victims[number % len(victims)]
        time.sleep(chance.uniform(0, 3))
        victim.kill()
        time.sleep(chance.uniform(0, 2))
        victim.start()

    def incidents(self) -> list[dict[str, Any]]:
        return self.service.rows("/api/incidents?all=true")


@pytest.fixture
def scene(tmp_path: Path, need_program: Callable[[str], str]) -> Iterator[Scene]:
    (tmp_path / "chat.yaml").write_text(SLO)
    program = need_program("prometheus-alertmanager")
    with (
        paging() as (direct_url, directly),
        paging() as (through_url, through),
        server(need_program("initdb"), is_durable=True) as postgres,
    ):
        (tmp_path / "hook").write_text(f"{direct_url}\n")
        (tmp_path / "am.yml").write_text(CONFIG.format(url=through_url))
        with alertmanager(program, tmp_path / "am", tmp_path / "am.yml") as running:
            flags = ["--slo", tmp_path / "chat.yaml", "--page-to", f"webhook:{tmp_path / 'hook'}"]
            flags += ["--alertmanagers", running.url, "--state-url", postgres.url]
            service = Service(tmp_path / "store", *QUICK, *flags)
            try:
                service.start()
                assert service.stop() == 0
                burn(service.store, postgres.url)
                service.start()
                yield Scene(service, postgres, running, directly, through)
            finally:
                service.end()


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3, id="3 kills"), pytest.param(50, id="50 kills", marks=pytest.mark.long)],
)
def test_kills_in_mid_incident_tell_nobody_twice(scene: Scene, kills: int) -> None:
    chance = random.Random(kills)
    for number in range(kills):
        scene.kill_one(chance, number)
    until(lambda: bool(_told(scene.directly)), 120)
    until(lambda: bool(_heard(scene.through)), 120)
    (incident,) = scene.incidents()
    scene.service.act(incident["id"], "resolve")
    until(lambda: _told(scene.directly)[-1][1] == "resolve", 60)
    until(lambda: _heard(scene.through)[-1] == "resolved", 60)

    assert len(scene.incidents()) == 1
    told, heard = _told(scene.directly), _heard(scene.through)
    print(f"{kills} kills: told directly {len(told)} times, by Alertmanager {len(heard)} times")
    once = list(dict.fromkeys(told))  # as a receiver that deduplicates has it
    assert [what for _, what in once] == ["trigger", "resolve"]
    assert len({key for key, _ in once}) == 1
    assert heard == sorted(heard) and set(heard) == {"firing", "resolved"}
    assert heard.count("firing") <= 1 + kills // 3, "once more for each kill of it, at most"


def _told(pager: Pager) -> list[tuple[str, str]]:
    return [(page["key"], page["what"]) for page in pager.told if page["severity"] == "page"]


def _heard(pager: Pager) -> list[str]:
    """The status of each notification of a page."""
    return [
        alert["status"]
        for sent in pager.told
        for alert in sent["alerts"]
        if alert["labels"]["severity"] == "page"
    ]
