"""What scrapes show of a course of traffic, in promtool's notation."""

from collections.abc import Sequence

from tailburn.engine.slo.course import Stretch
from tailburn.rules.promql import number


def counted(
    stretches: Sequence[Stretch], ratios: Sequence[float], interval_s: int, resets: Sequence[int]
) -> str:
    """The values of a counter of these shares of the traffic, the first one 0.

    Before the stretches of these indices the counter starts again at 0, as after a restart.
    It counts whole requests: promtool adds step to step, and a fraction's dust would look like
    a counter that goes back.
    """
    value, parts = 0, ["0"]
    for index, (stretch, ratio) in enumerate(zip(stretches, ratios, strict=True)):
        scrapes = _scrapes(stretch, interval_s)
        if not stretch.is_measured:
            parts.append(f"_x{scrapes}")
            continue
        if index in resets:
            value = 0
        step = round(stretch.requests_per_s * interval_s * ratio)
        parts.append(f"{value + step}+{step}x{scrapes - 1}")
        value += step * scrapes
    return " ".join(parts)


def levels(stretches: Sequence[Stretch], ratios: Sequence[float], interval_s: int) -> str:
    """The values of a gauge of requests a second of these shares of the traffic.

    The first scrape shows none, as a rate has none yet.
    """
    parts = ["_"]
    for stretch, ratio in zip(stretches, ratios, strict=True):
        scrapes = _scrapes(stretch, interval_s)
        level = number(stretch.requests_per_s * ratio)
        parts.append(f"{level}+0x{scrapes - 1}" if stretch.is_measured else f"_x{scrapes}")
    return " ".join(parts)


def _scrapes(stretch: Stretch, interval_s: int) -> int:
    scrapes, rest = divmod(stretch.for_s, interval_s)
    if rest or not scrapes:
        raise ValueError(f"{stretch.for_s} s is no multiple of {interval_s} s")
    return int(scrapes)
