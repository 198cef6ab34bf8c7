"""Courses of traffic and shares as people type them: `10%:20m`, `1%,10%`."""

import math
import re
from collections.abc import Sequence

from tailburn.app.errors import UserError
from tailburn.engine.slo.course import Stretch, gap
from tailburn.engine.slo.quantities import read_percent, read_time_s

WANTED = "want SHARE:DURATION such as 10%:20m, with @REQUESTS_PER_S if you like, or gap:5m"
MOST = 1e12  # beyond it, differences of counts lose single requests

_STRETCH = re.compile(r"(?P<share>[^:@]+):(?P<lasts>[^:@]+)(?:@(?P<rate>[^:@]+))?")
_LONGEST_S = 366 * 86_400.0


def stretches_of(texts: Sequence[str]) -> list[Stretch]:
    """`10%:20m`, `0.5%:1h@20` and `gap:5m`, in order. Raises UserError with all that is wrong."""
    found: list[Stretch] = []
    wrong: list[str] = []
    for text in texts:
        try:
            found.append(_stretch(text))
        except ValueError as error:
            wrong.append(f"{text!r}: {error}; {WANTED}")
    if wrong:
        raise UserError(*wrong)
    return found


def _stretch(text: str) -> Stretch:
    parts = _STRETCH.fullmatch(text.strip())
    if parts is None:
        raise ValueError("not a share with how long it lasts")
    for_s = _seconds(parts["lasts"].strip())
    if parts["share"].strip() == "gap":
        if parts["rate"] is not None:
            raise ValueError("a gap has no requests that could be counted")
        return gap(for_s)
    rate = 1.0 if parts["rate"] is None else amount(parts["rate"], "requests per second")
    return Stretch(for_s, _ratio(parts["share"].strip()), rate)


def _ratio(text: str) -> float:
    share = read_percent(text) if text.endswith("%") else None
    if share is None:
        raise ValueError(f"{text!r} is no percent")
    if share > 1:
        raise ValueError(f"{text} is over 100%")
    return share


def _seconds(text: str) -> float:
    seconds = read_time_s(text)
    if seconds is None:
        raise ValueError(f"{text!r} is no duration")
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(f"{text} is not between 0 and 366d")
    return seconds


def amount(text: str, what: str) -> float:
    """A number of requests, or of seconds; ValueError for what is none, or too many."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST:
        raise ValueError(f"{text.strip()[:40]!r} is not a number of {what} from 0 to {MOST:g}")
    return value


def shares_of(flag: str, text: str) -> list[float]:
    """Ratios of `1%,10%,100%`. Raises UserError with all that are none."""
    found: list[float] = []
    wrong: list[str] = []
    for part in text.split(","):
        share = read_percent(part.strip()) if "%" in part else None
        if share is None or not 0 < share <= 1:
            wrong.append(f"{flag} {part.strip()!r}: want percents up to 100%, such as 1%,10%,100%")
        else:
            found.append(share)
    if wrong:
        raise UserError(*wrong)
    return found
