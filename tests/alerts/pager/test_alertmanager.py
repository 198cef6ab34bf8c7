"""What Alertmanager is posted: times, labels, in pieces."""

from tailburn.alerts.pager.alertmanager import LASTS_NS, MOST_AT_ONCE, Alertmanager, Sent, body
from tests.alerts.pager.pages import Receiver

S = 1_000_000_000
NOW = 1_780_000_000 * S


def test_one_that_goes_on_lasts_four_resends_and_one_that_is_over_ended_when_it_did() -> None:
    on = Sent({"alertname": "A", "team": ""}, {"summary": "s"}, NOW - 60 * S)
    over = Sent({"alertname": "A"}, {}, NOW - 60 * S, NOW - 1_500_000)
    first, second = body([on, over], NOW)
    assert first["labels"] == {"alertname": "A"}, "an empty label is none"
    assert first["startsAt"] == "2026-05-28T20:25:40.000Z"
    assert first["endsAt"] == "2026-05-28T20:28:40.000Z" and LASTS_NS == 120 * S
    assert second["endsAt"] == "2026-05-28T20:26:39.998Z"


def test_many_are_posted_in_pieces() -> None:
    receiver = Receiver()
    alerts = [Sent({"alertname": "A", "n": str(n)}, {}, NOW) for n in range(MOST_AT_ONCE + 1)]
    Alertmanager("http://am", receiver.poster()).post(alerts, NOW)
    assert [len(posted) for posted in receiver.bodies] == [MOST_AT_ONCE, 1]
