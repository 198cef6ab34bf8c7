"""The shared dictionary of names, keys and wanted texts."""

import threading
from collections.abc import Mapping
from typing import Any, Final, Self

from tailburn.collector.otlp.kernel.entries import intern_text
from tailburn.collector.otlp.kernel.table import Table
from tailburn.collector.otlp.shares import Shares

CAPACITY: Final = 65_536
ARENA_BYTES: Final = 8 << 20
LONGEST_BYTES: Final = 1024

_DERIVED: Final = "\0derived"  # no tenant's name: holds what rules make of others' texts


class Dictionary:
    """Strings to dense, stable codes, bounded; code 0 is "" and stands for what found no room.

    Decoders that share a dictionary take its lock for each body.
    """

    def __init__(self, capacity: int = CAPACITY, arena_bytes: int = ARENA_BYTES) -> None:
        self.table = Table(capacity, arena_bytes, LONGEST_BYTES)
        self.shares = Shares(self.table)  # used with the lock held
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
            self.shares.charge(_DERIVED)
            return intern_text(self.table, text)

    def own_code(self, text: str) -> int:
        """The same for a text that comes from no sender: a word of the rules, a tenant's name.

        There is room for these when senders have taken all that they may.
        """
        with self.lock, self.shares.own():
            return intern_text(self.table, text)

    def dump(self) -> dict[str, Any]:
        """All strings by code, and who holds how many, for `load`."""
        texts = list(self.texts)
        with self.lock:
            return {"texts": texts, "shares": self.shares.dump()}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        """A dictionary with the codes of the one that was dumped."""
        dictionary = cls()
        with dictionary.shares.own():
            for code, text in enumerate(dumped["texts"]):
                if intern_text(dictionary.table, text) != code:
                    raise ValueError(f"not a dump of a dictionary: entry {code} is {text!r}")
        dictionary.shares.load(dumped["shares"])
        return dictionary
