"""The state database of a store, for as long as a command needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailburn.app.errors import UserError
from tailburn.engine.store.state.database import State, open_state, state_path
from tailburn.engine.store.state.schema import StateError


@contextmanager
def opened_state(store: Path) -> Iterator[State]:
    """Open it, or begin it, in a store's folder. Raises UserError where it is not ours to open."""
    try:
        state = open_state(state_path(store))
    except StateError as error:
        raise UserError(str(error)) from error
    try:
        yield state
    finally:
        state.close()


@contextmanager
def known_state(store: Path) -> Iterator[State | None]:
    """Open it where there is one; None where no service ever ran on the store."""
    if not state_path(store).exists():
        yield None
        return
    with opened_state(store) as state:
        yield state
