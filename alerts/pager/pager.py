"""Sends what is due: each message until its receiver has it, in the order in which it was decided.

What is sent is worded once, before the first try, and kept: a kill between sending and noting
that it was sent repeats the same message under the same id, and nothing else.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from tailburn.alerts.pager.page import Channel, DeliveryError, Page
from tailburn.alerts.pager.retry import next_try_ns
from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity
from tailburn.engine.store.state.deliveries import Deliveries, Delivery

log = logging.getLogger(__name__)

GIVES_UP_NS: Final = 24 * 3_600_000_000_000
"""So long after it was due for the first time a message is tried."""

Word = Callable[[Delivery], Page]


@dataclass(frozen=True)
class Answer:
    """Send it now, or hold it until a time (wall clock), or never send it, and why."""

    hold_until_unix_ns: int | None = None
    drop: str = ""


NOW: Final = Answer()
Wanted = Callable[[Delivery, int], Answer]


class Pager:
    """One channel's messages; `step` is called by one thread."""

    def __init__(
        self,
        channel: Channel,
        deliveries: Deliveries,
        word: Word,
        now_ns: Callable[[], int],
        wanted: Wanted = lambda delivery, wall_ns: NOW,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """`word`: what a message says, by what is known when it is sent first.

        `now_ns`: of the timeline; the wall clock is given to `step`. `wanted`: whether a message
        is to be sent, asked before each try. `leads`: whether no other service sends it.
        """
        self._channel = channel
        self._deliveries = deliveries
        self._word = word
        self._now_ns = now_ns
        self._wanted = wanted
        self._leads = leads

    def step(self, wall_ns: int) -> int:
        """Try what is due; how many got through. Raises `DBAPIError`."""
        due = self._deliveries.due(self._channel.name, wall_ns)
        return sum(self._try(delivery, wall_ns) for delivery in due)

    def _try(self, delivery: Delivery, wall_ns: int) -> bool:
        answer = self._wanted(delivery, wall_ns)
        if answer.drop:
            self._deliveries.drop(delivery, answer.drop, self._now_ns())
            return False
        if answer.hold_until_unix_ns is not None:
            self._deliveries.hold(delivery, answer.hold_until_unix_ns)
            return False
        page = self._worded(delivery)
        if not self._leads():
            return False
        try:
            self._channel.send(page)
        except DeliveryError as error:
            self._failed(delivery, error, wall_ns)
            return False
        self._deliveries.done(delivery, wall_ns, self._now_ns())
        return True

    def _worded(self, delivery: Delivery) -> Page:
        if delivery.page:
            return read(delivery.page)
        page = self._word(delivery)
        self._deliveries.word(delivery, written(page))
        return page

    def _failed(self, delivery: Delivery, error: DeliveryError, wall_ns: int) -> None:
        due_ns: int | None = None
        if not error.is_permanent and wall_ns - delivery.decided_unix_ns < GIVES_UP_NS:
            after_s = error.retry_after_s
            due_ns = next_try_ns(delivery.tries, wall_ns, after_s, delivery.message)
        if delivery.tries == 0 or due_ns is None:
            then = "it is not tried again" if due_ns is None else "it is tried again"
            log.error("incident %d is not told by %s: %s; %s", delivery.incident,
                      self._channel.name, error, then)  # fmt: skip
        self._deliveries.failed(delivery, str(error), due_ns, self._now_ns())


def written(page: Page) -> str:
    return json.dumps(asdict(page))


def read(text: str) -> Page:
    fields: dict[str, Any] = json.loads(text)
    fields["what"], fields["severity"] = What(fields["what"]), Severity(fields["severity"])
    return Page(**fields)
