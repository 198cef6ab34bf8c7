"""The targets that metrics are read from: who answers, and what the walk would be blind to."""

import asyncio
from collections.abc import Iterator
from typing import Final

from tailburn.app.doctor.finding import Finding, State
from tailburn.app.errors import UserError
from tailburn.app.parts import catalogue_of
from tailburn.app.scraping import places_of
from tailburn.app.settings import Settings
from tailburn.app.signals_reading import Checked, read_places

_SHOWN: Final = 10


def targets(settings: Settings) -> Iterator[Finding]:
    """Each list of targets, each target that is not well, and a line for all that are."""
    try:
        catalogue = catalogue_of(settings)
        places = places_of(settings, catalogue)
        if not places:
            todo = "name them: targets_files, _http, _dns or _kubernetes, or signals_prometheus"
            yield Finding("targets", State.NO_DATA, "no metrics of engines are read", todo)
            return
        checked = asyncio.run(read_places(settings, places, catalogue))
    except UserError as error:
        for line in error.lines:
            yield Finding("targets", State.BAD, line, "mend it: the service would not start")
        return
    if not checked:
        yield Finding("targets", State.WARN, "the lists of targets are empty", "name some")
        return
    well = [target for target in checked if target.is_well]
    if well:
        seen = f"{len(well):,} of {len(checked):,} tell all that the walk needs"
        yield Finding("targets", State.OK, seen)
    ill = [target for target in checked if not target.is_well]
    for target in ill[:_SHOWN]:
        yield _ill(target)
    if len(ill) > _SHOWN:
        seen = f"{len(ill) - _SHOWN:,} more are not well"
        yield Finding("targets", State.WARN, seen, "`tailburn signals check` shows all")


def _ill(target: Checked) -> Finding:
    subject = f"target {target.name}"
    if target.failure:
        return Finding(subject, State.BAD, target.failure, "`tailburn signals check` tries again")
    blind = ", ".join(f.signal.name for f in target.findings if f.blinds_walk)
    todo = f"`tailburn signals check {target.name}` says what that blinds"
    return Finding(subject, State.WARN, f"does not tell {blind}", todo)
