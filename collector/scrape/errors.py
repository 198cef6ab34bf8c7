"""Why a target was not read: a reason to count by, and a sentence for whoever mends it.

ScrapeError       a target that gave nothing this time
DiscoveryError    a list of targets that can't be had: the one before stays in use
"""

from enum import StrEnum


class Reason(StrEnum):
    """What `tailburn_targets` counts by; `UP` is a target that was read."""

    UP = "up"
    CONNECT = "connect"  # nobody listens, no such name, TLS fails
    TIMEOUT = "timeout"
    STATUS = "status"  # an HTTP status other than 200
    TOO_LARGE = "too_large"
    BROKEN = "broken"  # the answer ends early or can't be unpacked
    NOT_METRICS = "not_metrics"


class ScrapeError(Exception):
    """`str(error)` says what is wrong, and with what figure."""

    def __init__(self, reason: Reason, message: str, status: int | None = None) -> None:
        """`status`: the HTTP status that it is about, if it is about one."""
        super().__init__(message)
        self.reason = reason
        self.status = status


class DiscoveryError(Exception):
    """`str(error)` says which list, and what is wrong with it."""
