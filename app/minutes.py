"""Which whole minutes are to be evaluated next, however the clock behaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tailburn.engine.evaluation.windows import MINUTE_NS

LAG_NS: Final = 5_000_000_000
"""After a minute so long, for its requests to close and their rows to be published."""

CATCH_UP_NS: Final = 5 * MINUTE_NS
"""So many missed minutes are evaluated one by one; more of them are a gap."""

_DAY_NS: Final = 24 * 60 * MINUTE_NS


@dataclass(frozen=True)
class Due:
    """Minutes from after `last_ns` up to `until_ns`; what became of those before them."""

    last_ns: int
    until_ns: int
    skipped: int = 0  # minutes in which nothing ran, and that are not evaluated
    set_back_ns: int = 0  # so far the clock went back

    def minutes(self) -> Iterator[int]:
        return iter(range(self.last_ns + MINUTE_NS, self.until_ns + MINUTE_NS, MINUTE_NS))


def due(last_ns: int, now_ns: int, is_told: bool) -> Due | None:
    """What is to be evaluated at `now_ns`, where the minute `last_ns` was the last; None: nothing.

    `is_told`: senders tell the time, which may pass a thousand times as fast; then a gap is a
    day without a minute. A clock that goes back more than a minute is followed.
    """
    until_ns = (now_ns - LAG_NS) // MINUTE_NS * MINUTE_NS
    if until_ns > last_ns:
        gap_ns = _DAY_NS if is_told else CATCH_UP_NS
        if until_ns - last_ns > gap_ns:
            missed = (until_ns - last_ns) // MINUTE_NS - 1
            return Due(until_ns - MINUTE_NS, until_ns, skipped=missed)
        return Due(last_ns, until_ns)
    if until_ns < last_ns - MINUTE_NS:
        return Due(until_ns - MINUTE_NS, until_ns, set_back_ns=last_ns - until_ns)
    return None
