"""Text from outside, made harmless for a terminal, and figures as people read them."""

from rich.text import Text

NO_DATA = "no data"


def harmless(text: str) -> str:
    """`text` with every character a terminal could act on shown as its escape.

    Control characters (so also OSC and CSI sequences), separators and the invisible marks that
    turn the reading direction become `\\x1b`, `\\u202e` and the like; a line stays one line.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain(text: object, style: str = "") -> Text:
    """Text for rich that is never read as markup."""
    return Text(harmless(str(text)), style)


def duration(seconds: float | None) -> str:
    """Three digits and a unit: `812 µs`, `28.4 ms`, `3.61 s`; `no data` for None."""
    if seconds is None:
        return NO_DATA
    size = abs(seconds)
    if size == 0:
        return "0 ms"
    if size < 0.000_999_5:
        return f"{_three(seconds * 1e6)} µs"
    if size < 0.999_5:
        return f"{_three(seconds * 1e3)} ms"
    return f"{_three(seconds)} s"


def _three(value: float) -> str:
    """At least three significant digits, without an exponent."""
    size = abs(value)
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:,.{digits}f}"


def many(count: int, what: str) -> str:
    """`1 SLO`, `12 SLOs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def share(part: float) -> str:
    """A share as per cent: `12.3 %`."""
    return f"{round(part * 100, 1) + 0.0:.1f} %"  # + 0.0: never -0.0
