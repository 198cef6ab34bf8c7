"""The open batch: columns that grow, written by compiled code at addresses."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.otlp.kernel.memory import address_of

# Columns by group: a group has one count and one capacity. `*_end` and `strs.end` bound
# the entries of a row in another group.
GROUPS: Final[dict[str, dict[str, type[np.generic]]]] = {
    "spans": {
        "trace_low": np.uint64,
        "trace_high": np.uint64,
        "span": np.uint64,
        "parent": np.uint64,
        "start": np.int64,
        "end": np.int64,
        "kind": np.int8,
        "status": np.int8,
        "flags": np.uint32,
        "name": np.int32,
        "scope": np.int32,
        "resource": np.int32,
        "digest": np.uint64,
        "weight": np.float64,
        "wanted_end": np.int32,
        "nums_end": np.int32,
        "strs_end": np.int32,
        "events_end": np.int32,
        "received": np.int64,
        "tenant": np.int32,
    },
    "wanted": {"key": np.int32, "num": np.float64, "code": np.int32, "id": np.uint64},
    "nums": {"key": np.int32, "value": np.float64},
    "strs": {"key": np.int32, "end": np.int64},
    "bytes": {"byte": np.uint8},
    "events": {"name": np.int32, "ns": np.int64},
}

_FIRST_CAPACITY: Final = {
    "spans": 4096,
    "wanted": 32_768,
    "nums": 32_768,
    "strs": 32_768,
    "bytes": 1 << 20,
    "events": 4096,
}

FIELDS: Final = [
    *((f"{group}_{column}", np.int64) for group, columns in GROUPS.items() for column in columns),
    *((group, np.int64) for group in GROUPS),
    *((f"{group}_capacity", np.int64) for group in GROUPS),
]
"""What a record of compiled code holds of the buffers: addresses, counts, capacities."""


class Buffers:
    """The arrays behind `FIELDS` of a record."""

    def __init__(self, record: NDArray[np.void]) -> None:
        self._record = record
        self._arrays: dict[str, NDArray[Any]] = {}
        for group, capacity in _FIRST_CAPACITY.items():
            self._allocate(group, capacity)

    def _allocate(self, group: str, capacity: int) -> None:
        used = int(self._record[group][0])
        for column, dtype in GROUPS[group].items():
            name = f"{group}_{column}"
            array = np.empty(capacity, dtype)
            if used:
                array[:used] = self._arrays[name][:used]
            self._arrays[name] = array
            self._record[name] = address_of(array)
        self._record[f"{group}_capacity"] = capacity

    def grow(self, group: str) -> None:
        """Double a group."""
        self._allocate(group, 2 * int(self._record[f"{group}_capacity"][0]))

    def view(self, name: str, start: int = 0) -> NDArray[Any]:
        """The used part of a column, from `start`; valid until the buffers grow."""
        group = name.partition("_")[0]
        return self._arrays[name][start : int(self._record[group][0])]

    def copied(self, name: str) -> NDArray[Any]:
        """The used part of a column, the caller's own."""
        return self.view(name).copy()

    def offsets(self, name: str) -> NDArray[Any]:
        """A column of ends as offsets: one more, beginning with 0."""
        ends = self.view(name)
        result = np.empty(len(ends) + 1, ends.dtype)
        result[0] = 0
        result[1:] = ends
        return result

    def clear(self) -> None:
        """Begin a new batch."""
        for group in GROUPS:
            self._record[group] = 0
