"""The state database of a store, for as long as a command needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from tailburn.app.errors import UserError
from tailburn.app.settings import Settings
from tailburn.engine.store.state.database import State, open_state, reason_of
from tailburn.engine.store.state.place import is_begun, place_of
from tailburn.engine.store.state.schema import StateError


def state_of(settings: Settings) -> State:
    """Open it, or begin it. Raises UserError where it is not ours to open, or doesn't answer."""
    try:
        return open_state(place_of(settings.store, settings.state_url, settings.pair))
    except StateError as error:
        raise UserError(str(error)) from error


@contextmanager
def opened_state(settings: Settings) -> Iterator[State]:
    """As `state_of`. What goes wrong with it in between is a UserError too."""
    state = state_of(settings)
    try:
        yield state
    except DBAPIError as error:
        place = place_of(settings.store, settings.state_url, settings.pair)
        raise UserError(f"{place}: {reason_of(error)}") from error
    finally:
        state.close()


@contextmanager
def known_state(settings: Settings) -> Iterator[State | None]:
    """Open it where there is one; None where no service ever ran on the store."""
    if not is_begun(settings.store, settings.state_url):
        yield None
        return
    with opened_state(settings) as state:
        yield state
