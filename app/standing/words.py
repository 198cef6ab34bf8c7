"""Times and values of series as answers about alerts and budgets write them."""

from collections.abc import Mapping
from typing import Final

from tailburn.engine.slo.quantities import time_of

_STEPS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_MANY: Final = 2.0


def about(seconds: float) -> str:
    """A stretch of time to two digits or so: `3.2 d`, `13 h`, `45 min`, `20 s`."""
    for step_s, unit in _STEPS:
        if seconds >= _MANY * step_s or (unit == "min" and seconds >= step_s):
            return f"{_short(seconds / step_s)} {unit}"
    return f"{seconds:.0f} s"


def moment(ns: int | None) -> str:
    """To the minute, UTC; empty for None."""
    return "" if ns is None else time_of(ns)


def values_of(by: Mapping[str, str]) -> str:
    """`model=llama, gpu=0`."""
    return ", ".join(f"{name}={value}" for name, value in by.items())


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:.0f}"
