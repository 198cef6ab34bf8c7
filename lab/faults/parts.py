"""What a fault is made of: knobs turned, a workload changed, telemetry spoilt, and the truth.

Times are int64 ns of true time since the epoch of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from tailburn.lab.nearest import did_you_mean
from tailburn.lab.workload import Change

STEPS: Final = ("hop", "queue", "throughput", "kv", "nccl", "none")
"""Steps of the walk: whose hop, then the engine's queue, throughput, KV, NCCL; none: no fault."""


class FaultError(ValueError):
    """A scenario or severity that is none, or that cannot be; says what can."""


class Severity(StrEnum):
    """How far a cause is turned."""

    WEAK = "weak"
    MEDIUM = "medium"
    STRONG = "strong"

    @classmethod
    def _missing_(cls, value: object) -> "Severity":
        raise FaultError(f"no severity {value!r}; {did_you_mean(str(value), list(cls))}")


@dataclass(frozen=True)
class Turn:
    """A knob of the world at a value for some time, as `World.set` takes it."""

    knob: str
    value: float
    scope: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class TelemetryFault:
    """What is told wrongly while the fleet itself is well: `telemetry.KINDS`."""

    kind: str
    value: float
    scope: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Truth:
    """What is true of a fault; only who scores a run reads it."""

    scenario: str
    cause: str
    """What was broken, in a word or two: `memory bandwidth`."""
    hop: str
    """The hop that owns the excess, by the name of its span: `decode`, `engine-queue`."""
    step: str
    verdict: str
    severity: Severity
    start_ns: int
    end_ns: int
    affected: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By dimension (replica, host, zone, pool, gateway, tenant, client, release, ...), which."""
    pages: bool = True
    """Whether somebody should be woken; False for controls."""

    def as_json(self) -> dict[str, Any]:
        """The fields by name, as the truth file has them."""
        return {
            **{k: getattr(self, k) for k in self.__dataclass_fields__},
            "severity": self.severity.value,
            "affected": {k: list(v) for k, v in self.affected.items()},
        }


@dataclass(frozen=True)
class Fault:
    """One scenario at one severity in one time."""

    settings: tuple[Turn, ...]
    changes: tuple[Change, ...]
    telemetry: tuple[TelemetryFault, ...]
    truth: Truth


@dataclass(frozen=True)
class Confusable:
    """What a scenario may be taken for, and what tells the two apart."""

    scenario: str
    words: str
