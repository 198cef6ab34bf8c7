"""Messages of one channel: worded once, sent in order, tried again, given up, never forgotten."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tailburn.alerts.pager.page import DeliveryError, Page
from tailburn.alerts.pager.pager import GIVES_UP_NS, Pager
from tailburn.engine.incidents import Event, Happened, Incident, Message, Step, What
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.alerts import Alerts
from tailburn.engine.store.state.database import State, open_state, state_path
from tailburn.engine.store.state.deliveries import Deliveries, Delivery
from tailburn.engine.store.state.incidents import Incidents
from tests.engine.store.test_incidents import flip, key

S = 1_000_000_000
HOUR = 3_600 * S


@dataclass
class Receiver:
    """A channel that has what it was sent, or says why not."""

    name: str = "pager"
    trouble: DeliveryError | None = None
    pages: list[Page] = field(default_factory=list)

    def send(self, page: Page) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.pages.append(page)

    def close(self) -> None:
        pass


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """With an incident of which two messages are due: that it began, and that it is over."""
    state = open_state(state_path(tmp_path))
    Alerts(state).write(60 * S, {}, {}, [flip(key(), 1)])
    incident = Incident("k", 60 * S, Severity.PAGE, {})
    steps = [Step(incident, Event(60 * S, Happened.OPENED, "why"))]
    messages = [
        Message("k", what, Severity.PAGE, "pager", 60 * S, f"k-{what}")
        for what in (What.TRIGGER, What.RESOLVE)
    ]
    Incidents(state).advance(HOUR, HOUR, lambda *_: (steps, messages), now_unix_ns=100 * S)
    yield state
    state.close()


def word(delivery: Delivery) -> Page:
    return Page(
        "k", delivery.message, delivery.what, delivery.severity, f"{delivery.what} of it", "text",
        60 * S, delivery.at_ns, {"slo": "chat"}, {"runbook": "http://r"},
    )  # fmt: skip


def pager(state: State, receiver: Receiver, says: Callable[[Delivery], Page] = word) -> Pager:
    return Pager(receiver, Deliveries(state), says, lambda: 61 * S)


def happened(state: State) -> list[tuple[Happened, str]]:
    return [(event.what, event.text) for event in Incidents(state).timeline(1)][1:]


def test_what_is_due_is_sent_in_the_order_in_which_it_was_decided(state: State) -> None:
    receiver = Receiver()
    one = pager(state, receiver)
    assert [one.step(at * S) for at in (99, 100, 101, 102)] == [0, 1, 1, 0]
    assert [(p.id, p.what, p.title) for p in receiver.pages] == [
        ("k-trigger", What.TRIGGER, "trigger of it"), ("k-resolve", What.RESOLVE, "resolve of it"),
    ]  # fmt: skip
    assert receiver.pages[0].labels == {"slo": "chat"}
    assert happened(state) == [
        (Happened.TOLD, "trigger by pager"), (Happened.TOLD, "resolve by pager"),
    ]  # fmt: skip


def test_what_did_not_get_through_is_tried_again_with_the_same_words(state: State) -> None:
    receiver = Receiver(trouble=DeliveryError("pager: 503"))
    pager(state, receiver).step(100 * S)
    (first, second) = Deliveries(state).of(1)
    assert (first.tries, first.error) == (1, "pager: 503")
    assert second.tries == 0, "what comes after it waits for it"
    assert pager(state, receiver).step(104 * S) == 0
    assert Deliveries(state).of(1)[0].tries == 1, "not before its time"

    receiver.trouble = None

    def other(delivery: Delivery) -> Page:
        raise AssertionError("it was worded already")

    assert pager(state, receiver, other).step(107 * S) == 1
    assert receiver.pages == [word(first)]


def test_who_lost_the_lease_while_it_was_worded_sends_nothing_and_leaves_it_due(
    state: State,
) -> None:
    receiver, leading = Receiver(), [True]

    def slow(delivery: Delivery) -> Page:
        leading.clear()
        return word(delivery)

    one = Pager(receiver, Deliveries(state), slow, lambda: 61 * S, leads=lambda: bool(leading))
    assert one.step(100 * S) == 0
    first, _ = Deliveries(state).of(1)
    assert receiver.pages == [] and (first.tries, first.due_unix_ns) == (0, 100 * S)
    assert pager(state, receiver).step(101 * S) == 1, "whoever has it now"


def test_a_receiver_that_asks_to_wait_is_waited_for(state: State) -> None:
    receiver = Receiver(trouble=DeliveryError("pager: 429", retry_after_s=120.0))
    pager(state, receiver).step(100 * S)
    due_ns = Deliveries(state).of(1)[0].due_unix_ns
    assert due_ns is not None and due_ns >= 220 * S


def test_what_can_not_get_through_is_given_up_and_said(state: State) -> None:
    receiver = Receiver(trouble=DeliveryError("pager: 404", is_permanent=True))
    pager(state, receiver).step(100 * S)
    receiver.trouble = None
    assert pager(state, receiver).step(101 * S) == 1
    assert [page.what for page in receiver.pages] == [What.RESOLVE]
    assert happened(state)[0] == (Happened.NOT_TOLD, "trigger by pager: pager: 404")


def test_a_day_of_tries_is_enough(state: State) -> None:
    receiver = Receiver(trouble=DeliveryError("pager: 503"))
    at_ns = 100 * S
    while (due_ns := Deliveries(state).of(1)[0].due_unix_ns) is not None:
        at_ns = due_ns
        pager(state, receiver).step(at_ns)
    assert GIVES_UP_NS <= at_ns - 100 * S < GIVES_UP_NS + HOUR
    assert Deliveries(state).of(1)[0].tries > 24 * 8


def test_what_goes_by_another_channel_is_left_to_it(state: State) -> None:
    assert pager(state, Receiver(name="chat")).step(100 * S) == 0
    strayed = Deliveries(state).strayed(["chat"])
    assert [delivery.message for delivery in strayed] == ["k-trigger", "k-resolve"]
