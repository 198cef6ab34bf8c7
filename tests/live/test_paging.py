"""Incidents told live: by a webhook of the service's own, and through a real Alertmanager."""

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.burning import SLO, burn
from tests.live.monitoring import Pager, Program, alertmanager, paging
from tests.live.service import QUICK, Service, run, until

pytestmark = [pytest.mark.program("prometheus-alertmanager"), pytest.mark.timeout(600)]

CONFIG = """\
route:
  receiver: people
  group_by: [team, slo]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: people
    webhook_configs:
      - {{url: "{url}", send_resolved: true}}
      - {{url: "{service}", send_resolved: true}}
"""


@dataclass
class Told:
    """A service whose budget burns, and those it tells."""

    service: Service
    alertmanager: Program
    directly: Pager
    through: Pager

    @property
    def pages(self) -> list[dict[str, Any]]:
        return [page for page in self.directly.told if page["severity"] == "page"]

    def happened(self, what: str) -> list[str]:
        """The lines of the first incident's timeline that are of a kind."""
        (incident,) = self.incidents()
        timeline = self.service.get(f"/api/incidents/{incident['id']}").json()["timeline"]
        return [event["text"] for event in timeline if event["what"] == what]

    def incidents(self) -> list[dict[str, Any]]:
        url = f"{self.service.web}/api/incidents"
        found: list[dict[str, Any]] = httpx.get(url, trust_env=False).json()
        return found


@pytest.fixture
def told(tmp_path: Path, need_program: Callable[[str], str]) -> Iterator[Told]:
    (tmp_path / "chat.yaml").write_text(SLO)
    with paging() as (direct_url, directly), paging() as (through_url, through):
        (tmp_path / "hook").write_text(f"{direct_url}\n")
        program = need_program("prometheus-alertmanager")
        flags = ["--slo", tmp_path / "chat.yaml", "--page-to", f"webhook:{tmp_path / 'hook'}"]
        service = Service(tmp_path / "store", *QUICK, *flags)
        heard = f"{service.web}/api/alertmanager"
        (tmp_path / "am.yml").write_text(CONFIG.format(url=through_url, service=heard))
        with alertmanager(program, tmp_path / "am", tmp_path / "am.yml") as running:
            service.flags += ("--alertmanagers", running.url)
            try:
                service.start()
                assert service.stop() == 0
                burn(service.store)
                service.start()
                yield Told(service, running, directly, through)
            finally:
                service.end()


def test_one_page_tells_what_burns_over_a_kill_and_one_resolve_that_it_is_over(
    told: Told,
) -> None:
    until(lambda: bool(told.pages), 120)
    (page,) = told.pages
    assert page["what"] == "trigger" and "chat (model a" in page["title"]
    assert "availability burns its budget" in page["title"]
    assert "Budget" in page["text"] and "Whose: " in page["text"]

    until(lambda: any(_firing(sent) for sent in told.through.told), 60)
    (alert,) = told.through.told[-1]["alerts"]
    assert alert["labels"]["alertname"] == "TailburnIncident"
    assert (alert["labels"]["slo"], alert["labels"]["team"]) == ("chat", "serving")
    assert alert["annotations"]["summary"] == page["title"]

    told.service.kill()
    told.service.start()
    (incident,) = told.incidents()
    told.service.act(incident["id"], "ack")
    told.service.act(incident["id"], "resolve")
    until(lambda: len(told.pages) > 1, 60)
    assert [page["what"] for page in told.pages] == ["trigger", "resolve"]
    assert len({page["key"] for page in told.pages}) == 1
    assert told.pages[1]["title"].startswith("Over: chat")
    until(lambda: not _firing(told.through.told[-1]), 60)


@pytest.mark.parametrize(
    "wanted",
    [pytest.param(3, id="3 kills"), pytest.param(50, id="50 kills", marks=pytest.mark.long)],
)
def test_a_kill_between_sending_and_noting_it_repeats_the_same_message_and_no_other(
    told: Told, wanted: int
) -> None:
    kills: list[int] = []

    def kill() -> None:
        if len(kills) < wanted:
            kills.append(len(told.pages))
            told.service.kill()

    told.directly.before_answer = kill
    for number in range(wanted):
        until(partial(_more_than, kills, number), 120)
        told.service.start()
    until(lambda: len(told.pages) == wanted + 1, 120)
    told.service.act(told.incidents()[0]["id"], "resolve")
    until(lambda: told.pages[-1]["what"] == "resolve", 60)
    assert [page["what"] for page in told.pages] == ["trigger"] * (wanted + 1) + ["resolve"]
    begun = told.pages[:-1]
    assert all(page == begun[0] for page in begun), "the same words under the same id"
    assert len({page["key"] for page in told.pages}) == 1


def test_silences_and_acknowledgements_go_both_ways(told: Told) -> None:
    until(lambda: any(_firing(sent) for sent in told.through.told), 120)
    (incident,) = told.incidents()
    of = {"alertname": "TailburnIncident", "incident": str(incident["id"])}
    until(lambda: "trigger by Alertmanager, receiver people" in told.happened("told"))

    id = _silence(told.alertmanager, of, "maintenance")
    until(lambda: bool(told.service.rows("/api/silences")))
    (silence,) = told.service.rows("/api/silences")
    assert silence["matchers"] == [f'incident="{incident["id"]}"'] and silence["who"] == "bob"
    assert told.happened("note")[0].endswith("maintenance")
    httpx.delete(f"{told.alertmanager.url}/api/v2/silence/{id}", trust_env=False)
    until(lambda: not told.service.rows("/api/silences"))

    _silence(told.alertmanager, of, "ACK! I am on it")
    until(lambda: told.incidents()[0]["life"] == "acknowledged")
    assert told.incidents()[0]["owner"] == "bob"
    until(lambda: "ACK! in tailburn, incident 1" in _silenced(told.alertmanager))

    told.service.act(incident["id"], "resolve")
    until(lambda: "ACK! in tailburn, incident 1" not in _silenced(told.alertmanager))
    assert [page["what"] for page in told.pages] == ["trigger", "resolve"]


def test_what_is_acknowledged_here_is_over_there_once_it_is_over(told: Told) -> None:
    until(lambda: any(_firing(sent) for sent in told.through.told), 120)
    (incident,) = told.incidents()
    told.service.act(incident["id"], "ack")
    until(lambda: _silenced(told.alertmanager) == ["ACK! in tailburn, incident 1"])
    told.service.act(incident["id"], "resolve")
    until(lambda: not _firing(told.through.told[-1]), 60)
    assert _silenced(told.alertmanager) == []


def test_a_test_page_says_to_whom_alertmanager_sends_it_and_what_keeps_it_back(
    tmp_path: Path, need_program: Callable[[str], str]
) -> None:
    with paging() as (url, pager):
        (tmp_path / "am.yml").write_text(CONFIG.format(url=url, service=url))
        program = need_program("prometheus-alertmanager")
        with alertmanager(program, tmp_path / "am", tmp_path / "am.yml") as running:
            config = tmp_path / "tailburn.toml"
            config.write_text(f'alertmanagers = ["{running.url}"]\n')
            through = run("page", "test", "--config", config)
            assert (through.returncode, "it goes to people" in through.stdout) == (0, True)
            until(lambda: bool(pager.told), 60)
            _silence(running, {"alertname": "TailburnTest"}, "maintenance")
            kept = run("page", "test", "--config", config)
            assert (kept.returncode, "a silence keeps it back" in kept.stdout) == (1, True)


def _more_than(found: Sized, number: int) -> bool:
    return len(found) > number


def _silence(running: Program, labels: dict[str, str], comment: str) -> str:
    now = datetime.now(UTC)
    matchers = [{"name": n, "value": v, "isRegex": False} for n, v in labels.items()]
    body = {
        "matchers": matchers, "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(hours=1)).isoformat(), "createdBy": "bob", "comment": comment,
    }  # fmt: skip
    answer = httpx.post(f"{running.url}/api/v2/silences", json=body, trust_env=False)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["silenceID"])


def _silenced(running: Program) -> list[str]:
    """What the silences say that hold there."""
    silences = running.get("/api/v2/silences")
    return [one["comment"] for one in silences if one["status"]["state"] == "active"]


def _firing(sent: dict[str, Any]) -> bool:
    return any(
        alert["status"] == "firing" and alert["labels"]["severity"] == "page"
        for alert in sent["alerts"]
    )
