"""What one body, span, string or sender may cost."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of a `Decoder`. What is over them is cut or dropped and counted, never refused."""

    attributes: int = 1024  # kept per span
    events: int = 1024  # kept per span
    value_bytes: int = 4096  # kept per attribute value in the columns
    unlisted_bytes: int = 256  # longest string kept of an attribute that no list names
    name_bytes: int = 256  # longest name of a span or scope; longer ones are text, not names
    event_name_bytes: int = 128
    nesting: int = 16  # levels of arrays and kvlists; what lies deeper is dropped


DEFAULT = Limits()
