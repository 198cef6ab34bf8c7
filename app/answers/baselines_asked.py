"""Which baselines are asked for: as of when, of which series and clocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tailburn.app.answers.question import duration_ns
from tailburn.app.errors import UserError
from tailburn.app.options import BASELINE_BY, BASELINE_CLOCKS
from tailburn.engine.baseline.load import HOUR_NS
from tailburn.engine.baseline.pooling import STEPS
from tailburn.engine.names import CLOCK_COLUMNS
from tailburn.engine.problems import one_of
from tailburn.engine.rollup import MINUTE_NS
from tailburn.engine.schema import ROLLUP_DIMENSIONS

_POOLED: Final = frozenset(name for step in STEPS for name in step)


@dataclass(frozen=True)
class Asked:
    """`by` tells series apart; `where` says which of them; the present is `over_ns` long."""

    now_ns: int
    over_ns: int
    by: tuple[str, ...]
    clocks: tuple[str, ...]
    where: Mapping[str, str]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What is only filtered by counts too: its series have parents that it is none of."""
        return tuple(dict.fromkeys((*self.by, *self.where)))

    @property
    def present(self) -> tuple[int, int]:
        """Whole minutes, up to the one that runs, in ns."""
        until_ns = self.now_ns // MINUTE_NS * MINUTE_NS
        return until_ns - self.over_ns // MINUTE_NS * MINUTE_NS, until_ns

    @property
    def never_pooled(self) -> dict[str, str]:
        """Filters that leave every parent whole."""
        return {name: value for name, value in self.where.items() if name not in _POOLED}

    def wants(self, names: Mapping[str, str]) -> bool:
        """Whether a series passes the filters."""
        return all(names[name] == value for name, value in self.where.items())


def asked_for(now_ns: int, over: str, by: str, clocks: str, where: Mapping[str, str]) -> Asked:
    """The question as typed, names apart by commas. Raises UserError."""
    over_ns = duration_ns("--over", over)
    if not MINUTE_NS <= over_ns <= HOUR_NS:
        raise UserError(
            f"--over {over}: want 1m to 1h, since it is held against an hour of each day before"
        )
    names = _names(by) or _names(BASELINE_BY)
    for name in (*names, *where):
        if name not in ROLLUP_DIMENSIONS:
            raise UserError(f"baselines: dimension {name!r} {one_of(name, ROLLUP_DIMENSIONS)}")
    return Asked(
        now_ns, over_ns, names, _clocks(_names(clocks) or _names(BASELINE_CLOCKS)), dict(where)
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _clocks(asked: Sequence[str]) -> tuple[str, ...]:
    """Columns of clocks, each named by itself or by the clock, which is at all vantages."""
    found: set[str] = set()
    for name in asked:
        meant = [c for c in CLOCK_COLUMNS if c == name or c.startswith(f"{name}_")]
        if not meant:
            known = [*dict.fromkeys(c.split("_")[0] for c in CLOCK_COLUMNS), *CLOCK_COLUMNS]
            raise UserError(f"--clock {name!r} {one_of(name, known)}")
        found.update(meant)
    return tuple(c for c in CLOCK_COLUMNS if c in found)
