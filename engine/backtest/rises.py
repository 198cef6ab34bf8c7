"""What a counter rose by from one reading of it to the next, as a rate in PromQL has it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.grouping import F64, I64


@dataclass(frozen=True)
class Rises:
    """Minutes at which the counter was read, at which it was read next, and by what it rose."""

    begin: I64
    end: I64
    amount: I64

    @property
    def is_across(self) -> NDArray[np.bool_]:
        """Whether there are minutes in between at which nobody read it."""
        return self.end - self.begin > 1


@dataclass
class Counter:
    """One series of whole numbers, read piece by piece in order of time.

    The first value says nothing: it may have been counted at any time. A value below the one
    before is a counter that began again at 0.
    """

    last_at: int | None = None
    _last: float = 0.0

    def take(self, at: I64, values: F64) -> Rises:
        """Readings at minutes that rise; those that are no finite number are none."""
        told = np.isfinite(values)
        at, values = at[told], values[told]
        if not len(at):
            return Rises(at, at, at)
        if self.last_at is not None:
            at, values = np.append(self.last_at, at), np.append(self._last, values)
        self.last_at, self._last = int(at[-1]), float(values[-1])
        before, after = values[:-1], values[1:]
        amount = np.rint(np.where(after < before, after, after - before)).astype(np.int64)
        return Rises(at[:-1], at[1:], amount)
