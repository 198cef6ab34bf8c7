"""Who is told by the settings, what is known of an incident, and what Alertmanager is told when."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tailburn.alerts.pager.alertmanager import RESEND_NS, Sent
from tailburn.alerts.pager.page import DeliveryError
from tailburn.app.errors import UserError
from tailburn.app.incident_keeping import IncidentKeeping
from tailburn.app.paging.channels import people_of
from tailburn.app.paging.facts import Facts
from tailburn.app.paging.loop import Beating, Refreshing, Wording
from tailburn.app.settings import Settings
from tailburn.engine.changes import Change, Kind
from tailburn.engine.incidents import Incident, What
from tailburn.engine.store.api import StoreError
from tailburn.engine.store.state.changes import Changes
from tests.alerts.pager.pages import Receiver
from tests.app.lives import Lives
from tests.app.slos import CHAT

ONE = replace(CHAT, clocks={}, availability_ratio=0.99)
S = 1_000_000_000


def secret(folder: Path, text: str) -> Path:
    file = folder / "secret"
    file.write_text(text)
    return file


def test_each_way_is_a_channel_once(tmp_path: Path) -> None:
    hook = f"webhook:{secret(tmp_path, 'https://hooks.example/x')}"
    people = people_of(
        Settings(page_to=(hook, f"pagerduty:{tmp_path / 'secret'}"), ticket_to=(hook,),
                 alertmanagers=("http://am-1:9093", "http://am-2:9093/"))
    )  # fmt: skip
    assert [channel.name for channel in people.channels] == [
        hook, f"pagerduty:{tmp_path / 'secret'}"
    ]  # fmt: skip
    assert [one.name for one in people.alertmanagers] == ["http://am-1:9093", "http://am-2:9093"]
    people.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"page_to": ("pager",)},
            "page_to: pager: want pagerduty:FILE, slack:FILE, webhook:FILE or",
        ),
        ({"ticket_to": ("slack:",)}, "ticket_to: slack:: want pagerduty:FILE"),
        ({"page_to": ("slack:/nowhere/x",)}, "page_to: slack:/nowhere/x: No such file"),
        ({"page_to": ("webhook:FILE",)}, "begins with http:// or https://"),
        ({"page_to": ("slack:EMPTY",)}, "want a file with one line"),
        ({"page_to": ("email:oncall",)}, "page_to: email:oncall: want an address such as"),
        ({"page_to": ("email:a@b",), "mail_server": "mail"}, "mail_server: mail: want HOST:PORT"),
        ({"page_to": ("email:a@b",), "mail_login": Path("FILE")}, "mail_login: want a file with"),
        ({"alertmanagers": ("am:9093",)}, "alertmanagers: am:9093: want an address that begins"),
    ],
)
def test_a_way_that_is_none_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("not-an-address\n")
    Path("EMPTY").write_text("\n")
    with pytest.raises(UserError) as error:
        people_of(Settings(**settings))
    assert says in str(error.value)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    """Seven hours that were well, and ten minutes in which all was bad."""
    lives = Lives(tmp_path / "store", [ONE], healthy=420)
    lives.minutes(10, 1.0)
    return lives


def keeping(lives: Lives) -> IncidentKeeping:
    kept = IncidentKeeping(lives.slos, lives.database, {}, lambda: lives.now_ns)
    kept.step()
    return kept


def known(lives: Lives) -> tuple[Facts, Incident]:
    (incident,) = keeping(lives).incidents.all()
    return facts_of(lives, "http://t/"), incident


def facts_of(lives: Lives, public_url: str | None = None, store: Any = None) -> Facts:
    changes = Changes(lives.database)
    return Facts(store or lives.store, lives.evaluating, changes, public_url)


def test_a_page_names_what_was_changed_shortly_before_and_touches_it(lives: Lives) -> None:
    facts, incident = known(lives)
    began_ns, minute = incident.opened_ns, 60 * S
    for name, ago, where in (
        ("old", 61, {}), ("vllm", 20, {}), ("gateway", 5, {"zone": "a"}), ("late", -1, {}),
        ("other", 5, {"model": "qwen"}),
    ):  # fmt: skip
        at_ns = began_ns - ago * minute
        Changes(lives.database).add(Change(at_ns, Kind.DEPLOY, name, "1", "2", where))
    told = replace_select(facts, {"model": "llama"}).told(incident, What.TRIGGER, lives.now_ns)
    assert [line[6:] for line in told.changes] == [
        "deploy late 1 -> 2", "deploy gateway 1 -> 2, zone a", "deploy vllm 1 -> 2",
    ]  # fmt: skip


def replace_select(facts: Facts, select: dict[str, str]) -> Facts:
    """As if its SLO selected these."""
    facts._slos = {name: replace(slo, select=select) for name, slo in facts._slos.items()}
    return facts


def test_what_a_page_says_is_what_the_budget_says(lives: Lives) -> None:
    facts, incident = known(lives)
    told = facts.told(incident, What.TRIGGER, lives.now_ns)
    assert (told.slo, told.objective, told.number) == ("chat", "availability", 1)
    assert told.burn_rate is not None and told.burn_rate > 10
    assert told.left_ratio is not None and told.left_ratio < 1
    assert "bad, too much is" in told.why
    assert told.says == "Nothing is measured now that was before: no hop can be named."
    assert told.links["incident"] == "http://t/api/incidents/1"
    assert len(told.others) == len(incident.firing) - 1


def test_a_store_that_is_broken_keeps_no_page_back(lives: Lives) -> None:
    facts, incident = known(lives)
    for segment in (lives.store.root / "verdicts").rglob("*.parquet"):
        segment.write_bytes(b"PAR1 and no more")
    told = facts.told(incident, What.TRIGGER, lives.now_ns)
    assert (told.slo, told.left_ratio, told.owner) == ("chat", None, None)


@pytest.mark.parametrize("trouble", [StoreError("out of memory"), ZeroDivisionError("a defect")])
def test_what_can_not_be_found_out_keeps_no_page_back(lives: Lives, trouble: Exception) -> None:
    class Broken:
        def query(self, *_: object, **__: object) -> None:
            raise trouble

    _, incident = known(lives)
    facts = facts_of(lives, store=Broken())
    told = facts.told(incident, What.TRIGGER, lives.now_ns)
    assert (told.slo, told.left_ratio, told.says) == ("chat", None, None)


@dataclass
class Am:
    """An Alertmanager that has what it was told, or is down."""

    name: str = "am"
    is_down: bool = False
    told: list[Sequence[Sent]] = field(default_factory=list)

    def post(self, alerts: Sequence[Sent], now_unix_ns: int) -> None:
        if self.is_down:
            raise DeliveryError("am: down")
        self.told.append(alerts)


def refreshing(lives: Lives, am: Am) -> Refreshing:
    kept = keeping(lives)
    facts = facts_of(lives)
    wording = Wording(kept, facts, lambda: lives.now_ns)
    return Refreshing(am, kept, wording)  # type: ignore[arg-type]


def test_an_open_incident_is_told_again_and_a_change_at_once(lives: Lives) -> None:
    am = Am()
    one = refreshing(lives, am)
    at_ns = lives.now_ns
    for second in (0, 1, 15, 29):
        one.step(at_ns + second * S)
    assert len(am.told) == 1
    one.step(at_ns + RESEND_NS)
    assert len(am.told) == 2

    for _ in range(80):
        lives.minute(0.0)
        keeping(lives)
        one.step(lives.now_ns)
    *_, last = am.told
    assert all(alert.ends_unix_ns is not None for alert in last)
    ends = {alert.ends_unix_ns for told in am.told for alert in told if alert.ends_unix_ns}
    assert max(ends) < lives.now_ns - 15 * 60 * S, "it is not told of for ever"


def test_what_it_was_before_it_got_worse_ends(lives: Lives) -> None:
    am = Am()
    refreshing(lives, am).step(lives.now_ns)
    page, ticket = am.told[0]
    assert (page.labels["severity"], page.ends_unix_ns) == ("page", None)
    assert ticket.labels == {**page.labels, "severity": "ticket"}
    assert ticket.ends_unix_ns is not None


def test_one_that_is_down_is_tried_again_soon(lives: Lives) -> None:
    am = Am(is_down=True)
    one = refreshing(lives, am)
    at_ns = lives.now_ns
    with pytest.raises(DeliveryError):
        one.step(at_ns)
    am.is_down = False
    one.step(at_ns + RESEND_NS // 3)
    assert len(am.told) == 1


def test_the_heart_beats_each_minute_while_alerts_are_evaluated() -> None:
    receiver, is_well = Receiver(), [True]
    beating = Beating(receiver.poster(), lambda: is_well[0])
    for second in (0, 1, 59, 60, 61):
        beating.step(second * S)
    assert len(receiver.posted) == 2
    is_well[0] = False
    beating.step(300 * S)
    assert len(receiver.posted) == 2, "somebody outside pages now"


def test_alerts_are_well_while_they_are_evaluated_and_written(lives: Lives) -> None:
    evaluating = lives.evaluating
    assert evaluating.is_well()
    evaluating.health = replace(evaluating.health, unwritten_minutes=1)
    assert not evaluating.is_well()
    evaluating.health = replace(evaluating.health, unwritten_minutes=0, caught_up_s=-1e9)
    assert not evaluating.is_well()


def test_a_heartbeat_without_an_address_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="heartbeat_to: .*begins with http"):
        people_of(Settings(heartbeat_to=secret(tmp_path, "nowhere")))
