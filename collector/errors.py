"""What can go wrong between a sender and the log.

IngestError
├── BadBody     the sender's fault: never retry (400, INVALID_ARGUMENT)
├── TooLarge    over the size limit after decompression (413, RESOURCE_EXHAUSTED)
└── Busy        ours, passing: retry after `retry_after_s` (503, UNAVAILABLE)
    └── NoRoom  the disk is full
"""


class IngestError(Exception):
    """A body that was not taken. `str(error)` is fit for the sender."""


class BadBody(IngestError):
    """The body can't be decoded."""


class TooLarge(IngestError):
    """The body is over the limit."""


class Busy(IngestError):
    """More is in flight than this service holds."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NoRoom(Busy):
    """The log can't be written: the disk is full."""
