"""Times and shares as people write them: `400ms`, `1h30m`, `30d`, `99.9%`."""

import re
from datetime import UTC, datetime
from typing import Final

_UNITS_S: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_ALSO_READ_S: Final = {"w": 604_800.0, "us": 1e-6, "µs": 1e-6}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|[smhdw])")
TIME_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(ms|us|µs|s|m|h|d|w))+$"
SHARE_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?\s*%?$"


def read_time_s(text: str) -> float | None:
    """Seconds of `1h30m`, each part a number and its unit; None where it is not so written."""
    if not re.fullmatch(TIME_PATTERN, text):
        return None
    units = _UNITS_S | _ALSO_READ_S
    seconds = sum(float(number) * units[unit] for number, unit in _PART.findall(text))
    return round(seconds, 9)


def write_time(seconds: float) -> str:
    """The shortest text that is read as these seconds: `500ms`, `30d`, `90m`."""
    for unit in ("d", "h", "m"):
        if seconds > 0 and seconds % _UNITS_S[unit] == 0:
            return f"{int(seconds // _UNITS_S[unit])}{unit}"
    return f"{_decimal(seconds)}s" if seconds >= 1 else f"{_decimal(seconds * 1000)}ms"


def time_of(ns: int) -> str:
    """An instant to the minute, UTC: `2026-11-24 13:00`."""
    return f"{datetime.fromtimestamp(ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M}"


def read_percent(text: str) -> float | None:
    """The ratio of `99.9%` or `99.9`: 0.999; None where it is no number."""
    if not re.fullmatch(SHARE_PATTERN, text):
        return None
    # A shift of the decimal point, free of the dust that a division leaves.
    return round(float(text.rstrip("% \t")) / 100, 12)


def write_percent(ratio: float) -> str:
    """0.999 as `99.9%`."""
    return f"{_decimal(ratio * 100)}%"


def read_number(text: str) -> float | None:
    """A plain decimal number; None for anything else, say `1e3`, `nan` or `0x10`."""
    return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else None


def _decimal(number: float) -> str:
    """Without exponent, dust and trailing zeros."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
