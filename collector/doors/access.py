"""Who may come in: the seam between the doors and the service's access rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

Headers = Sequence[tuple[bytes, bytes]]
"""Header or metadata pairs in the order they came, names in lower case."""


class Scope(StrEnum):
    """What a token lets its bearer do. `admin` holds the other three."""

    INGEST = "ingest"
    READ = "read"
    RESPOND = "respond"  # acknowledge, silence, add a change, Alertmanager's webhook
    ADMIN = "admin"


@dataclass(frozen=True)
class Refusal:
    """Why somebody may not come in; `reason` is fit for the sender.

    `known` tells the two kinds apart: False asks for a (better) token (401,
    UNAUTHENTICATED), True says that no retry with the same identity will do (403,
    PERMISSION_DENIED).
    """

    known: bool
    reason: str


class Gate(Protocol):
    """Decides from what is known before a body is read."""

    def admit(
        self, peer: str | None, headers: Headers, scope: Scope, *, shows_host: bool = True
    ) -> str | Refusal:
        """The tenant whose data this is, or a refusal.

        `peer` is the sender's address, None where the transport hides it. `shows_host` is
        False where the transport can't show the Host that was asked for.
        """
        ...
