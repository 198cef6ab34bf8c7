"""The shared dictionary of names, keys and wanted texts."""

import threading
from collections.abc import Iterable
from typing import Final, Self

from tailburn.collector.otlp.kernel.entries import intern_text
from tailburn.collector.otlp.kernel.table import Table

CAPACITY: Final = 65_536
ARENA_BYTES: Final = 8 << 20
LONGEST_BYTES: Final = 1024


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
        with self.lock:
            return intern_text(self.table, text)

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
