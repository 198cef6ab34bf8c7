"""Times and shares as the calculators say them."""

import math

from tailburn.engine.slo.burn import DAY_S, HOUR_S, MINUTE_S, Pair
from tailburn.engine.slo.quantities import write_time

NEVER = "never"


def span(seconds: float | None) -> str:
    """About how long: `52s`, `8.6m`, `7.2h`, `3d`; `never` for None."""
    if seconds is None:
        return NEVER
    if seconds < 99.5:
        return f"{round(seconds, 1):g}s" if seconds < 9.95 else f"{seconds:.0f}s"
    for unit_s, unit, up_to in ((MINUTE_S, "m", 120), (HOUR_S, "h", 48), (DAY_S, "d", math.inf)):
        if seconds < up_to * unit_s:
            return f"{round(seconds / unit_s, 1):g}{unit}"
    raise ValueError(f"want a finite time, got {seconds!r}")


def percent(ratio: float) -> str:
    """A share with three digits: `14.4 %`, `0.144 %`, `-210 %`."""
    if abs(ratio) >= 9.995:
        return f"{ratio * 100:,.0f} %"
    return f"{ratio * 100:.3g} %"


def windows(pair: Pair) -> str:
    """Both windows of a pair: `1h/5m`."""
    return f"{write_time(pair.long_s)}/{write_time(pair.short_s)}"


def title(pair: Pair) -> str:
    """A pair in a few characters: `page 1h/5m`."""
    return f"{pair.severity} {windows(pair)}"
