"""Sums over the last steps of time, a column per series: any order of the same amounts adds up
to the same."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailburn.engine.grouping import I64

I32 = NDArray[np.int32]

_LEAST_WIDTH: Final = 8


class Ring:
    """Whole amounts of the last `depth` steps; a step is a number that rises with time.

    `cells`: each column holds so many amounts instead of one. What comes for steps before the
    last `depth` ones is left out.
    """

    def __init__(self, depth: int, cells: int = 1) -> None:
        self.depth = depth
        self.cells = cells
        self.width = 0
        self.newest: int | None = None
        self._held: I32 = np.zeros((depth, _LEAST_WIDTH * cells), np.int32)

    def widen(self, width: int) -> None:
        """Make room for so many columns."""
        self.width = max(self.width, width)
        held = self._held.shape[1]
        if self.width * self.cells > held:
            wider = np.zeros((self.depth, max(self.width * self.cells, held * 2)), np.int32)
            wider[:, :held] = self._held
            self._held = wider

    def add(self, steps: I64, columns: I64, amounts: I64) -> None:
        """Add an amount, or a row of `cells` of them, to a step and column each."""
        if not len(steps):
            return
        self._advance(int(steps.max()))
        assert self.newest is not None
        reached = steps > self.newest - self.depth
        row = steps[reached] % self.depth * self._held.shape[1]
        at = row + columns[reached] * self.cells
        amount = amounts[reached].astype(np.int32)
        if self.cells > 1:
            at = at[:, None] + np.arange(self.cells)
        np.add.at(self._held.reshape(-1), at.reshape(-1), amount.reshape(-1))

    def total(self, first: int, last: int) -> I64:
        """The sum of each column over these steps, both included; (width,) or (width, cells)."""
        used = self.width * self.cells
        sums = np.zeros(used, np.int64)
        for begin, end in self._parts(first, last):
            sums += self._held[begin:end, :used].sum(axis=0, dtype=np.int64)
        return sums if self.cells == 1 else sums.reshape(self.width, self.cells)

    def column(self, column: int, first: int, last: int) -> I64:
        """What each of these steps, both included, has in one column of one cell."""
        found = np.zeros(last - first + 1, np.int64)
        if self.newest is not None:
            steps = np.arange(first, last + 1)
            held = (steps <= self.newest) & (steps > self.newest - self.depth)
            found[held] = self._held[steps[held] % self.depth, column * self.cells]
        return found

    def _advance(self, step: int) -> None:
        """Let go of what leaves with a newer step."""
        if self.newest is None:
            self.newest = step
        if step <= self.newest:
            return
        if step - self.newest >= self.depth:
            self._held[:] = 0
        else:
            self._held[np.arange(self.newest + 1, step + 1) % self.depth] = 0
        self.newest = step

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """The held rows of these steps, as slices."""
        if self.newest is None:
            return []
        first, last = max(first, self.newest - self.depth + 1), min(last, self.newest)
        if first > last:
            return []
        begin, end = first % self.depth, last % self.depth
        return [(begin, end + 1)] if begin <= end else [(begin, self.depth), (0, end + 1)]
