"""A page: what one person is told of one incident, and what a channel says of sending it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tailburn.engine.incidents import What
from tailburn.engine.slo.burn import Severity


@dataclass(frozen=True)
class Page:
    """One message of one incident."""

    key: str
    """The same for every message of an incident: receivers deduplicate by it."""
    id: str
    """Of this message alone, and the same each time it is tried: the idempotency key."""
    what: What
    severity: Severity
    title: str
    text: str
    began_ns: int
    """Of harm, since the epoch."""
    at_ns: int
    """Of the decision to tell, since the epoch."""
    labels: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses by name: `incident`, `runbook`, `dashboard`."""


class DeliveryError(Exception):
    """A page did not get through; the message says to whom and why.

    `is_permanent`: trying again can not help. `retry_after_s`: how long the receiver asks to wait.
    """

    def __init__(
        self, message: str, *, is_permanent: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent
        self.retry_after_s = retry_after_s


class Channel(Protocol):
    """One way to tell people. May be used from one thread at a time."""

    @property
    def name(self) -> str:
        """As settings and deliveries name it."""

    def send(self, page: Page) -> None:
        """Returns once the receiver has said that it has it. Raises DeliveryError."""

    def close(self) -> None:
        """Let go of its connections."""
