"""What a target tells of all that it should, and what that blinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tailburn.collector.signals.catalogue import STEPS, Catalogue, Signal
from tailburn.collector.signals.mapper import Mapped, Told


class Standing(StrEnum):
    """How a signal stands at a target."""

    FOUND = "found"
    SILENT = "no sample yet"  # declared, and nothing has happened so far
    DERIVED = "derived"
    MISSING = "missing"
    NEVER = "never told"  # by none of the programs at this target


@dataclass(frozen=True)
class Finding:
    """One signal at one target. `through` says under which name; `note` what to beware of."""

    signal: Signal
    standing: Standing
    source: str = ""
    through: str = ""
    samples: int = 0
    note: str = ""

    @property
    def is_there(self) -> bool:
        return self.standing in (Standing.FOUND, Standing.SILENT, Standing.DERIVED)

    @property
    def blinds_walk(self) -> bool:
        """Whether the walk can't judge a step for want of it."""
        return self.signal.needed and not self.is_there

    @property
    def step(self) -> str:
        return f"{self.signal.step} {STEPS[self.signal.step]}"


def survey(catalogue: Catalogue, mapped: Mapped) -> tuple[Finding, ...]:
    """Every signal that the programs at a target should tell, and what they tell besides."""
    roles = {catalogue.source(name).role for name in mapped.sources}
    expected = [
        signal
        for signal in catalogue.signals.values()
        if signal.role in roles or signal.name in mapped.told
    ]
    return tuple(_finding(catalogue, signal, mapped) for signal in expected)


def _finding(catalogue: Catalogue, signal: Signal, mapped: Mapped) -> Finding:
    told = mapped.told.get(signal.name)
    if told is not None:
        return _told(signal, told)
    if signal.derived is not None:
        first, operator, second = signal.derived
        parts = [mapped.told.get(first), mapped.told.get(second)]
        if all(parts):
            names = f" {operator} ".join(part.reading.through for part in parts if part)
            source = parts[0].reading.source if parts[0] else ""
            return Finding(signal, Standing.DERIVED, source, names, _fewest(parts))
    could = _could(catalogue, signal, mapped)
    if could:
        return Finding(signal, Standing.MISSING, through=could)
    return Finding(signal, Standing.NEVER)


def _told(signal: Signal, told: Told) -> Finding:
    standing = Standing.FOUND if told.samples else Standing.SILENT
    reading = told.reading
    return Finding(signal, standing, reading.source, reading.through, told.samples, reading.note)


def _could(catalogue: Catalogue, signal: Signal, mapped: Mapped) -> str:
    """The metrics that the programs at the target would have for it; empty where they have none."""
    if signal.derived is not None:
        first, operator, second = signal.derived
        parts = [_named(catalogue, name, mapped) for name in (first, second)]
        if all(parts):
            return f" {operator} ".join(parts)
    return _named(catalogue, signal.name, mapped)


def _named(catalogue: Catalogue, signal: str, mapped: Mapped) -> str:
    """The first reading; one of an older version only where there is none of today."""
    readings = [
        reading
        for name in sorted(mapped.sources)
        for reading in catalogue.source(name).readings
        if reading.signal == signal
    ]
    today = next((reading for reading in readings if not reading.until), None)
    if today is not None:
        return today.through
    return f"{readings[0].through} (to {readings[0].until})" if readings else ""


def _fewest(parts: list[Told | None]) -> int:
    return min(part.samples for part in parts if part)


def untold(catalogue: Catalogue, everywhere: Mapping[str, bool]) -> tuple[Signal, ...]:
    """Signals the walk needs that no target at all tells; `everywhere` are those told."""
    return tuple(s for s in catalogue.signals.values() if s.needed and not everywhere.get(s.name))
