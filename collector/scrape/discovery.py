"""Which targets there are: several lists, each kept as it was while it can't be had anew."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.files import files_of, read_files
from tailburn.collector.signals.targets import Target

log = logging.getLogger(__name__)


class Finder(Protocol):
    """One list of targets."""

    @property
    def name(self) -> str: ...
    async def find(self) -> Sequence[Target]:
        """Raises DiscoveryError."""


class FileFinder:
    """Targets out of files; they are read again when one changes."""

    def __init__(self, patterns: Sequence[Path], tenant: str) -> None:
        self.name = "files"
        self._patterns = patterns
        self._tenant = tenant
        self._seen: tuple[object, ...] | None = None
        self._targets: Sequence[Target] = ()

    async def find(self) -> Sequence[Target]:
        return await asyncio.to_thread(self._read)

    def _read(self) -> Sequence[Target]:
        seen = tuple((file, _stamp(file)) for file in files_of(self._patterns))
        if seen != self._seen:
            self._targets = read_files(self._patterns, self._tenant)
            self._seen = seen
        return self._targets


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class Discovery:
    """All lists together. Of two entries with one address the first is taken."""

    def __init__(self, finders: Sequence[Finder], patience_s: float | None = None) -> None:
        """A list that takes longer than `patience_s` is used as it was, until it is there."""
        self._finders = finders
        self._patience_s = patience_s
        self._asking: dict[int, asyncio.Future[Sequence[Target]]] = {}  # by place of the list
        self._last: dict[int, Sequence[Target]] = {}
        self.problems: dict[str, str] = {}  # by name of the list: why it can't be had

    async def targets(self) -> list[Target]:
        """Never raises: a list that fails is told once and used as it was."""
        lists = await asyncio.gather(*map(self._of, range(len(self._finders))))
        found: dict[str, Target] = {}
        for target in (target for targets in lists for target in targets):
            found.setdefault(target.url, target)
        return list(found.values())

    def cancel(self) -> None:
        """Waits for no list any more."""
        for asking in self._asking.values():
            asking.cancel()

    async def _of(self, place: int) -> Sequence[Target]:
        finder = self._finders[place]
        if place not in self._asking:
            self._asking[place] = asyncio.ensure_future(finder.find())
        asking = self._asking[place]
        await asyncio.wait([asking], timeout=self._patience_s)
        if not asking.done():
            return self._last.get(place, ())
        del self._asking[place]
        try:
            targets = asking.result()
        except DiscoveryError as error:
            problem = str(error)
            if self.problems.get(finder.name) != problem:
                log.error("targets: %s: %s; the list before stays in use", finder.name, problem)
            self.problems[finder.name] = problem
            return self._last.get(place, ())
        if self.problems.pop(finder.name, None):
            log.warning("targets: %s: all is well again, %d targets", finder.name, len(targets))
        self._last[place] = targets
        return targets
