"""The state database: whether it answers, and which schema it has."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.settings import Settings
from tailburn.engine.store.state.address import Postgres
from tailburn.engine.store.state.database import state_path, version_at
from tailburn.engine.store.state.place import is_begun, place_to_look_at
from tailburn.engine.store.state.schema import NEWEST, StateError

_SUBJECT: Final = "state database"
_BEGINS: Final = "the first start makes it"
_UPGRADES: Final = "the next start brings it up to date"


def database(settings: Settings) -> Iterator[Finding]:
    """Looked at as it is, changing nothing."""
    store, url = settings.store, settings.state_url
    if not url and not is_begun(store):
        yield Finding(_SUBJECT, State.NO_DATA, "none yet", _BEGINS)
        return
    began_s = time.monotonic()
    try:
        place = place_to_look_at(store, url)
        version = version_at(place)
    except StateError as error:
        todo = "nothing starts without it; see docs/store.md" if url else "restore an older copy"
        yield Finding(_SUBJECT, State.BAD, str(error), todo)
        return
    yield _found(place, version, time.monotonic() - began_s)
    if url and state_path(store).exists():
        seen = f"{state_path(store)} is there too, and is not used while state_url is set"
        yield Finding(_SUBJECT, State.WARN, seen, "remove it once nothing in it is missed")


def _found(place: Path | Postgres, version: str | None, took_s: float) -> Finding:
    where = f"{place}, answers in {took_s * 1000:.0f} ms" if isinstance(place, Postgres) else place
    if version is None:
        return Finding(_SUBJECT, State.NO_DATA, f"{where}; no tables of this store yet", _BEGINS)
    of = f"schema {place.schema}" if isinstance(place, Postgres) else "schema"
    seen = f"{where}, {of} {version}"
    if version == NEWEST:
        return Finding(_SUBJECT, State.OK, seen)
    if version > NEWEST:
        return Finding(_SUBJECT, State.BAD, f"{seen} is newer than {NEWEST}", "start that version")
    return Finding(_SUBJECT, State.OK, f"{seen}, {NEWEST} is the newest", _UPGRADES)
