"""The memory that compiled code works in."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailburn.collector.otlp.attributes import learn_key
from tailburn.collector.otlp.limits import Limits
from tailburn.collector.otlp.memory import REVISION, address_of, compiled
from tailburn.collector.otlp.names import LONG, class_of_name, names, patterns_at
from tailburn.collector.otlp.numbers import FORM_ADDRESS
from tailburn.collector.otlp.state import GUESSES, KEY, RECORD, REJECTS, state_at
from tailburn.collector.otlp.strays import resource
from tailburn.collector.otlp.table import Table, table_at
from tailburn.collector.otlp.values import FRAMES_BYTES

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
        self.numbers = memoryview(self.record.view(np.int64))
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

    def long_key(self, code: int, key: str) -> None:
        """Keep long strings of this key, unless its name is to be blanked."""
        name = np.frombuffer(bytearray(key.encode()), np.uint8)
        _learn(self.address, name, code)

    def __getitem__(self, field: str) -> int:
        """An integer field of the record."""
        return self.numbers[_FIELDS[field]]


def _entries(revision: int) -> tuple[Any, Any]:
    """What Python calls, compiled anew with every `memory.REVISION`."""

    @compiled
    def enter(state: int, message: NDArray[np.uint8]) -> int:
        c = state_at(state)
        c.revision = revision
        p = np.int64(message.ctypes.data)
        c.readable = p + len(message)
        patterns, words = patterns_at(c.names), patterns_at(c.words)
        status = resource(c, table_at(c.resources), patterns, words, p, c.readable)
        return status if status < 0 else c.resource_code

    @compiled
    def learn(state: int, name: NDArray[np.uint8], code: int) -> None:
        c = state_at(state)
        c.revision = revision
        p = np.int64(name.ctypes.data)
        learn_key(
            c,
            table_at(c.dictionary),
            code,
            class_of_name(patterns_at(c.names), p, p + len(name)) | LONG,
        )

    return enter, learn


_enter, _learn = _entries(REVISION)


def enter_resource(resources: Table, message: bytes) -> int:
    """The code of a Resource message, new or known; 0 when there is no room."""
    workspace = Workspace(Limits(), Table(1, 1, 1), resources)
    return int(_enter(workspace.address, np.frombuffer(bytearray(message), np.uint8)))
