"""The shared dictionary of names, keys and wanted texts."""

import threading
from collections.abc import Iterable
from typing import Any, Final, Self

from tailburn.collector.otlp.hashing import lasting_hash
from tailburn.collector.otlp.memory import address_of, compiled
from tailburn.collector.otlp.table import MISSING, Table, bytes_in, find, hash_for, insert

CAPACITY: Final = 65_536
ARENA_BYTES: Final = 8 << 20
LONGEST_BYTES: Final = 1024


@compiled
def intern(table: Any, p: int, end: int) -> int:
    """The code of the bytes, new or known; 0 when there is no room. The caller checked UTF-8."""
    if p == end:
        return 0
    h = hash_for(table, p, end)
    code = find(table, p, end, h)
    if code == MISSING:
        code = insert(table, p, end, h, lasting_hash(p, end))
    return code


@compiled
def _intern(record: Any, p: int, length: int) -> int:
    return intern(record[0], p, p + length)


class Dictionary:
    """Strings to dense, stable codes, bounded; code 0 is "" and stands for what found no room.

    Decoders that share a dictionary take its lock for each body.
    """

    def __init__(self, capacity: int = CAPACITY, arena_bytes: int = ARENA_BYTES) -> None:
        self.table = Table(capacity, arena_bytes, LONGEST_BYTES)
        self.lock = threading.Lock()
        self._texts = [""]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def overflowed(self) -> int:
        """How often a string found no room."""
        return self.table.overflowed

    @property
    def texts(self) -> list[str]:
        """All strings by code. The list grows with the dictionary: don't change it."""
        with self.lock:
            for code in range(len(self._texts), len(self.table)):
                self._texts.append(self.table.bytes_of(code).decode())
        return self._texts

    def text(self, code: int) -> str:
        """The string of a code; "" for 0."""
        if code < len(self._texts):
            return self._texts[code]
        return self.texts[code]

    def code(self, text: str) -> int:
        """The code of a string, new or known; 0 when there is no room."""
        data = bytes_in(text.encode())
        length = len(text.encode())
        with self.lock:
            return int(_intern(self.table.record, address_of(data), length))

    def dump(self) -> list[str]:
        """All strings by code, for `load`."""
        return list(self.texts)

    @classmethod
    def load(cls, texts: Iterable[str]) -> Self:
        """A dictionary with the codes of the one that was dumped."""
        dictionary = cls()
        for code, text in enumerate(texts):
            if dictionary.code(text) != code:
                raise ValueError(f"not a dump of a dictionary: entry {code} is {text!r}")
        return dictionary
