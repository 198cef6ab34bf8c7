"""Where alerts go, judged by amtool; and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailburn.alerts.alertmanager.amtool import check_config, receivers_of
from tailburn.alerts.alertmanager.config import Theirs, configuration, secret_files
from tailburn.alerts.alertmanager.delivery import Delivery, Kind, delivery
from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.engine.slo.burn import Severity
from tests.alerts.alertmanager.examples import (
    DELIVERIES,
    PAGES,
    SLOS,
    TICKETS,
    all_alerts,
    labels_of,
)
from tests.alerts.alertmanager.test_merge import BLOCK, SHAPES

WAYS = {
    "pagerduty": "pagerduty",
    "opsgenie": "opsgenie",
    "slack": "slack:#slo",
    "email": "email:oncall@example.com",
    "webhook": "webhook:http://127.0.0.1:9/alerts",
}


@pytest.fixture
def amtool(need_program: Callable[[str], str]) -> str:
    return need_program("amtool")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_amtool_takes_every_kind_of_receiver(way: str, amtool: str) -> None:
    ways = (delivery(Severity.PAGE, way), delivery(Severity.TICKET, way))
    check_config(amtool, configuration(SLOS, ways, smarthost="mail:25"), "am.yml")


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_amtool_takes_every_merged_configuration(text: str, amtool: str) -> None:
    check_config(amtool, configuration(SLOS, DELIVERIES, Theirs("am.yml", text)), "am.yml")


def test_what_amtool_refuses_is_told_by_file(amtool: str) -> None:
    with pytest.raises(ConfigError, match=r"^am\.yml: amtool: FAILED: .*undefined receiver"):
        check_config(amtool, "route: {receiver: none}\n", "am.yml")


def test_every_alert_goes_to_its_team_by_its_severity(tmp_path: Path, amtool: str) -> None:
    config = tmp_path / "am.yml"
    config.write_text(configuration(SLOS, DELIVERIES, Theirs("am.yml", BLOCK)))
    seen = {}
    for alert in all_alerts():
        labels = labels_of(alert, model="a")
        key = (alert.slo.team, alert.severity)
        if key not in seen:
            seen[key] = receivers_of(amtool, config, labels)
    assert seen == {
        ("assistants", Severity.PAGE): ("tailburn-assistants-page",),
        ("assistants", Severity.TICKET): ("tailburn-ticket",),
        ("batch", Severity.PAGE): ("tailburn-page",),
        ("batch", Severity.TICKET): ("tailburn-ticket",),
    }


def test_a_users_alerts_go_where_they_went(tmp_path: Path, amtool: str) -> None:
    config = tmp_path / "am.yml"
    config.write_text(configuration(SLOS, DELIVERIES, Theirs("am.yml", BLOCK)))
    theirs = {"alertname": "DiskFull", "severity": "page", "slo": "chat", "team": "assistants"}
    assert receivers_of(amtool, config, theirs) == ("desk",)


def test_a_receiver_of_the_user_takes_our_pages(tmp_path: Path, amtool: str) -> None:
    config = tmp_path / "am.yml"
    ways = (delivery(Severity.PAGE, "receiver:desk"), TICKETS)
    config.write_text(configuration(SLOS, ways, Theirs("am.yml", BLOCK)))
    check_config(amtool, config.read_text(), "am.yml")
    page = next(a for a in all_alerts() if a.severity is Severity.PAGE)
    assert receivers_of(amtool, config, labels_of(page)) == ("desk",)


def test_the_same_slos_give_the_same_bytes() -> None:
    assert configuration(SLOS, DELIVERIES) == configuration(SLOS, DELIVERIES)


def test_no_secret_is_written_but_the_file_it_is_read_from() -> None:
    text = configuration(SLOS, DELIVERIES, secrets="/run/secrets/")
    for file in secret_files(DELIVERIES, "/run/secrets"):
        assert f": {file}\n" in text
    assert not {"routing_key:", "api_key:", "api_url:"} & set(text.split())


def test_a_mail_goes_out_from_the_address_it_goes_to() -> None:
    ways = (PAGES, delivery(Severity.TICKET, "email:oncall@example.com"))
    text = configuration(SLOS, ways, smarthost="mail:25")
    assert "smarthost: mail:25" in text
    assert "from: alertmanager@example.com" in text


def test_a_users_mail_server_is_used() -> None:
    ways = (PAGES, delivery(Severity.TICKET, "email:oncall@example.com"))
    assert "smarthost:" not in configuration(SLOS, ways, Theirs("am.yml", BLOCK)).replace(
        "smtp_smarthost", ""
    )


REFUSED: dict[str, tuple[tuple[Delivery, ...], str]] = {
    "a severity that goes nowhere": ((PAGES,), "--ticket: is not given for all teams"),
    "two ways for one team": ((PAGES, PAGES, TICKETS), "--page: is given twice for all teams"),
    "a team without an SLO": (
        (PAGES, TICKETS, delivery(Severity.PAGE, "assistant=slack")),
        "--page: team 'assistant' has no SLO: .*did you mean assistants?",
    ),
    "mail without a server": (
        (PAGES, delivery(Severity.TICKET, "email:a@b.c")),
        "--ticket: email needs a mail server: want --smarthost",
    ),
    "a receiver without a file": (
        (delivery(Severity.PAGE, "receiver:desk"), TICKETS),
        "--page: receiver:desk names a receiver of yours: want --into",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_can_not_work_is_refused(case: tuple[tuple[Delivery, ...], str]) -> None:
    with pytest.raises(ConfigError, match=case[1]):
        configuration(SLOS, case[0])


def test_an_unknown_receiver_is_refused_with_the_nearest() -> None:
    ways = (delivery(Severity.PAGE, "receiver:dsk"), TICKETS)
    with pytest.raises(ConfigError, match=r"receiver 'dsk' of am\.yml .* did you mean desk\?"):
        configuration(SLOS, ways, Theirs("am.yml", BLOCK))


def test_a_way_is_read_with_its_team_and_address() -> None:
    assert delivery(Severity.PAGE, "db=slack:#db") == Delivery(
        Severity.PAGE, "db", Kind.SLACK, "#db"
    )
    webhook = delivery(Severity.PAGE, "webhook:http://x/?a=b")
    assert webhook == Delivery(Severity.PAGE, "", Kind.WEBHOOK, "http://x/?a=b")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("pager", "want \\[TEAM=\\]WAY"),
        ("email", "email needs an address: email:ADDRESS"),
        ("webhook:", "webhook needs an address"),
        ("pagerduty:abc", "takes no address; its key is read from a file"),
        ("", "want"),
    ],
)
def test_a_way_that_can_not_be_read_is_refused(given: str, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted):
        delivery(Severity.PAGE, given)


def test_amtool_that_can_not_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be run"):
        check_config(str(tmp_path / "amtool"), "route: {receiver: a}\n", "am.yml")
