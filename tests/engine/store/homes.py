"""Where a test keeps its state: each has a store of its own, in a file or on a server."""

from dataclasses import dataclass
from pathlib import Path

from tailburn.engine.store.state.database import State, open_state
from tailburn.engine.store.state.place import place_of


@dataclass(frozen=True)
class Home:
    """A store's folder, and the server that has its state; empty for a file in the folder."""

    store: Path
    url: str = ""

    def open(self) -> State:
        return open_state(place_of(self.store, self.url))

    @property
    def arguments(self) -> list[str]:
        """For another process, which opens it by `opened`."""
        return [str(self.store), self.url]


def opened(store: str, url: str) -> State:
    return Home(Path(store), url).open()
