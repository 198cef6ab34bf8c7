"""What a check found: data, printed elsewhere."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tailburn.engine.slo.model import Kind, Objective, Place, Slo, Tier


class Severity(StrEnum):
    """An error breaks what the SLO promises; a warning weakens it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing wrong: where, what was given, which limit it breaks, and what to do."""

    place: Place
    severity: Severity
    code: str  # stable: CI configurations name it
    slo: str  # empty in a text that is no SLO
    field: str
    given: str
    limit: str
    remedy: str

    def __str__(self) -> str:
        where = ": ".join(filter(None, (self.slo, self.field)))
        return (
            f"{self.place}: {self.severity} {self.code}: {where}: "
            f"{self.given}: {self.limit}; {self.remedy}"
        )

    def as_row(self) -> dict[str, Any]:
        """A flat object for JSON."""
        row = asdict(self) | {"file": self.place.file, "line": self.place.line}
        del row["place"]
        return row


def error(code: str, slo: Slo, field: str, given: str, limit: str, remedy: str) -> Finding:
    """A finding that ends `rules check` with 1."""
    return Finding(slo.place, Severity.ERROR, code, slo.name, field, given, limit, remedy)


def warning(code: str, slo: Slo, field: str, given: str, limit: str, remedy: str) -> Finding:
    """A finding that ends `rules check` with 1 under --strict only."""
    return Finding(slo.place, Severity.WARNING, code, slo.name, field, given, limit, remedy)


def field_of(objective: Objective) -> str:
    """Where a budget stands in the document: `spec.clocks.ttft.acceptable.p95`."""
    if objective.kind is Kind.CLOCK:
        percentile = objective.name.removeprefix(f"{objective.clock}_").replace("_", ".")
        return f"spec.clocks.{objective.clock}.{Tier.ACCEPTABLE}.{percentile}"
    return f"spec.{objective.name}"


def percent(ratio: float) -> str:
    """`0.0144` as `1.44 %`."""
    return f"{ratio * 100:.4g} %"


def span(seconds: float) -> str:
    """A span in the largest unit that it is a multiple of: `6h`, `90s`, `0.5s`."""
    for unit, length_s in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length_s and seconds % length_s == 0:
            return f"{seconds / length_s:g}{unit}"
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"
