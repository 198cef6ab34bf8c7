"""Telemetry that is broken on the way, as a control: the fleet is well, what it says is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.lab.ear.scenes import Scene
from tailburn.lab.faults.scenario import TelemetryFault
from tailburn.lab.faults.telemetry import FOREVER_NS

SKEW_S: Final = 0.2


@dataclass(frozen=True)
class Broken:
    """One way in which telemetry is broken. `whole`: no span is lost by it."""

    name: str
    whole: bool
    faults: Callable[[Scene], Sequence[TelemetryFault]]


def _all_along(kind: str, value: float, scope: str = "all") -> TelemetryFault:
    return TelemetryFault(kind, value, scope, 0, FOREVER_NS)


def _skews(scene: Scene) -> list[TelemetryFault]:
    """Every host's clock is wrong, one ahead, the next behind."""
    return [
        _all_along("clock_skew", SKEW_S if i % 2 else -SKEW_S, f"host:{host.name}")
        for i, host in enumerate(scene.fleet.hosts)
    ]


BROKEN: Final = (
    Broken("clocks 200 ms off", True, _skews),
    Broken("bodies late", True, lambda _: [_all_along("body_late", 20.0)]),
    Broken("bodies twice", True, lambda _: [_all_along("body_twice", 0.3)]),
    Broken("30 % of spans lost", False, lambda _: [_all_along("span_loss", 0.3)]),
    Broken(
        "all of it at once",
        False,
        lambda scene: [
            *_skews(scene),
            _all_along("span_loss", 0.3),
            _all_along("body_twice", 0.3),
            _all_along("body_late", 20.0),
        ],
    ),
)
