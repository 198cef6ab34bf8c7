"""The memory that compiled code works in."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.otlp.kernel.memory import address_of
from tailburn.collector.otlp.kernel.names import names
from tailburn.collector.otlp.kernel.numbers import FORM_ADDRESS
from tailburn.collector.otlp.kernel.state import GUESSES, KEY, RECORD, REJECTS
from tailburn.collector.otlp.kernel.table import Table
from tailburn.collector.otlp.kernel.values import FRAMES_BYTES
from tailburn.collector.otlp.limits import Limits

_FIELDS: Final = {name: i for i, name in enumerate(RECORD.names or ())}
_PAD_BYTES: Final = 64
_SLACK: Final = 64  # what a last write may be longer than the limit it was checked against


class Workspace:
    """The record of a decoder and the arrays that it points at."""

    def __init__(
        self, limits: Limits, dictionary: Table, resources: Table, wants: bytes = b""
    ) -> None:
        self.record = np.zeros(1, RECORD)
        self.address = address_of(self.record)
        self.numbers = self.record.view(np.int64).data
        self._shipped = names()
        self._kept: list[Any] = [dictionary, resources]
        self.keys = np.zeros(len(dictionary.entries) + 1, KEY)
        self.rejects = np.zeros((REJECTS, 3), np.int64)
        self.record["keys"] = address_of(self.keys)
        self.record["rejects"] = address_of(self.rejects)
        self.record["dictionary"] = address_of(dictionary.record)
        self.record["resources"] = address_of(resources.record)
        self.record["names"] = address_of(self._shipped.record)
        self.record["words"] = address_of(self._shipped.words)
        self.record["form"] = FORM_ADDRESS
        self._bytes("wants", len(wants) + 1)[:-1] = np.frombuffer(wants, np.uint8)
        self._bytes("guesses", 4 * GUESSES)
        self._bytes("scratch", max(limits.value_bytes, limits.name_bytes) + _SLACK)
        self._bytes("base64", limits.value_bytes + _SLACK)
        self._bytes("pad", _PAD_BYTES)
        self._bytes("frames", FRAMES_BYTES)
        self.record["max_attributes"] = limits.attributes
        self.record["max_events"] = limits.events
        for name in ("value_bytes", "unlisted_bytes", "name_bytes", "event_name_bytes", "nesting"):
            self.record[name] = getattr(limits, name)

    def _bytes(self, name: str, size: int) -> NDArray[np.uint8]:
        array = np.zeros(size, np.uint8)
        self._kept.append(array)
        self.record[name] = address_of(array)
        return array

    def __getitem__(self, field: str) -> int:
        """An integer field of the record."""
        return self.numbers[_FIELDS[field]]
