"""How long who needs the state database waits for it, and what marks a transaction that writes."""

from typing import Final

BUSY_TIMEOUT_S: Final = 5.0
"""For another writer, and for one of the connections that are open at most."""

CONNECT_S: Final = 5
STATEMENT_S: Final = 10.0
SILENT_S: Final = 15.0
"""A server that says nothing for so long is given up, however alive its connection looks."""

IDLE_S: Final = 30.0
"""The server undoes a transaction whose client says nothing for so long, and frees its lock."""

SHARED_IDLE_S: Final = 5.0
"""The same for one that writes what is shared: another service waits for it to take over."""

WRITES: Final = "tailburn_writes"
"""The execution option of a connection whose transactions write: `OWN`, or `SHARED` as well."""

OWN: Final = "own"
SHARED: Final = "shared"
