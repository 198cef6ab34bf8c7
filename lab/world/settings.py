"""Settings of knobs over time: what was asked for, and what is in force when."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.world.knobs import COLUMN, Knob, KnobError, Level, Rule, checked, knob
from tailburn.lab.world.layout import FOREVER

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One knob at one value, on some things, from `start_ns` until `end_ns`."""

    name: str
    value: float
    scope: str
    start_ns: int
    end_ns: int
    things: tuple[int, ...]


@dataclass
class Settings:
    """All settings of a run, and the plan that they make: what changes when."""

    first: dict[Level, F64]
    """The values that the run began with."""
    given: list[Setting] = field(default_factory=list)

    def add(self, setting: Setting, now_ns: int) -> None:
        """Take one more; KnobError when it begins before `now_ns` or ends before it begins."""
        checked(setting.name, setting.value)
        if setting.start_ns < now_ns:
            raise KnobError(
                f"{setting.name}: start {setting.start_ns} ns is past, the world is at {now_ns} ns"
            )
        if setting.end_ns <= setting.start_ns:
            raise KnobError(f"{setting.name}: want an end after its start {setting.start_ns} ns")
        self.given.append(setting)

    def plan(self, from_ns: int) -> tuple[I64, F64]:
        """All changes at or after `from_ns`: rows of (instant, level, column, thing), values."""
        rows: list[tuple[int, int, int, int]] = []
        values: list[float] = []
        for name in dict.fromkeys(s.name for s in self.given):
            self._plan_knob(knob(name), from_ns, rows, values)
        table = np.array(rows, np.int64).reshape(-1, 4)
        # By instant, then as given: stable.
        order = np.argsort(table[:, 0], kind="stable")
        return np.ascontiguousarray(table[order]), np.array(values, np.float64)[order]

    def _plan_knob(
        self,
        one: Knob,
        from_ns: int,
        rows: list[tuple[int, int, int, int]],
        values: list[float],
    ) -> None:
        mine = [s for s in self.given if s.name == one.name]
        things = sorted({t for s in mine for t in s.things})
        for thing in things:
            of_thing = [s for s in mine if thing in s.things]
            for at in sorted({t for s in of_thing for t in (s.start_ns, s.end_ns)}):
                if at >= from_ns and at < FOREVER:
                    rows.append((at, int(one.level), COLUMN[one.name], thing))
                    values.append(self._in_force(one, thing, of_thing, at))

    def _in_force(self, one: Knob, thing: int, of_thing: list[Setting], at: int) -> float:
        first = float(self.first[one.level][thing, COLUMN[one.name]])
        active = [s.value for s in of_thing if s.start_ns <= at < s.end_ns]
        if not active:
            return first
        if one.rule == Rule.LAST:
            return active[-1]
        if one.rule == Rule.SUM:
            return float(first + sum(active))
        return float(first * np.prod(active))

    def value_at(self, name: str, thing: int, at_ns: int) -> float:
        """What a knob of a thing is at an instant."""
        mine = [s for s in self.given if s.name == name and thing in s.things]
        return self._in_force(knob(name), thing, mine, at_ns)
