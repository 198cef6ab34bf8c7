"""What both faces of alerts are compared by: minutes of a course, and when to ask."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

BEGIN: Final = 28_000_080  # minutes since the epoch: a multiple of an hour


class Lasting(Protocol):
    """Something that stays so for some minutes."""

    @property
    def minutes(self) -> int: ...


One = TypeVar("One", bound=Lasting)


def minutes_of(course: Iterable[One]) -> Iterator[One]:
    for stretch in course:
        yield from [stretch] * stretch.minutes


def steps_around(fires: NDArray[np.bool_], also: Iterable[int]) -> Iterator[int]:
    """Evaluations on either side of each change, one away from it, and some others.

    Those that lie one away from another change are left out.
    """
    changes = (np.flatnonzero(np.diff(fires)) + 1).tolist()
    at = {*also, *(c - 2 for c in changes), *(c + 1 for c in changes)}
    for step in sorted(a for a in at if 0 <= a < len(fires)):
        around = fires[max(step - 1, 0) : step + 2]
        if around.all() or not around.any():
            yield step
