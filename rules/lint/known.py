"""What a check may know besides the SLO: traffic, retention, a Prometheus to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Sample:
    """One series of an answer, at the time of asking."""

    labels: Mapping[str, str]
    value: float


class Prometheus(Protocol):
    """A live Prometheus."""

    @property
    def version(self) -> str: ...

    @property
    def retention_s(self) -> float | None:
        """How far back it answers; None when it is bounded by size only, or does not say."""
        ...

    def query(self, expr: str) -> Sequence[Sample]: ...


@dataclass(frozen=True)
class Known:
    """All optional: a check that lacks what it needs finds nothing."""

    rate_per_s: float | None = None  # requests of the quietest label set
    retention_s: float | None = None
    prometheus: Prometheus | None = None
