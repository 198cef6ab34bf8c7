"""`tailburn signals check`: each target read once, and what it tells set against what it should."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailburn.app.errors import UserError
from tailburn.app.parts import catalogue_of
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import draw, json_lines, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import harmless, plain
from tailburn.collector.scrape.errors import DiscoveryError, ScrapeError
from tailburn.collector.scrape.fetch import Bounds, new_client
from tailburn.collector.scrape.files import read_files
from tailburn.collector.scrape.reading import Reading, read_body, read_target
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.mapper import Mapper
from tailburn.collector.signals.survey import Finding, Standing, survey, untold
from tailburn.collector.signals.targets import Target, target_of

_AT_ONCE = 32
_STYLES = {
    Standing.FOUND: "green",
    Standing.SILENT: "green",
    Standing.DERIVED: "green",
    Standing.MISSING: "yellow",
    Standing.NEVER: "dim",
}


@dataclass(frozen=True)
class Checked:
    """A target: what it tells, or why it could not be read."""

    name: str
    findings: tuple[Finding, ...] = ()
    sources: tuple[str, ...] = ()
    complaint: str = ""  # what was left out of its answer
    failure: str = ""
    samples: int = 0

    @property
    def is_well(self) -> bool:
        return not self.failure and not any(finding.blinds_walk for finding in self.findings)


def check_targets(
    settings: Settings,
    targets: Sequence[str],
    files: Sequence[Path],
    signal_files: Sequence[Path],
    every: bool,
    json: bool,
) -> bool:
    """Print what each tells; False where one can't be read or blinds the walk."""
    catalogue = catalogue_of(settings, signal_files)
    saved = [Path(name) for name in targets if Path(name).is_file()]
    asked = _targets(settings, [n for n in targets if not Path(n).is_file()], files, not targets)
    if not saved and not asked:
        raise UserError("no targets: name some, or a file of them with --file or targets_files")
    checked = [_saved(path, catalogue) for path in saved]
    bounds = Bounds(settings.scrape_timeout_s, settings.scrape_body_bytes)
    checked += asyncio.run(_ask(asked, catalogue, bounds))
    if json:
        json_lines(row for target in checked for row in _rows(target))
    else:
        for target in checked:
            _print(target, every)
        _print_everywhere(catalogue, checked)
    return all(target.is_well for target in checked)


def _targets(
    settings: Settings, names: Iterable[str], files: Sequence[Path], configured: bool
) -> list[Target]:
    """Those named and those of files; of the settings where none is named at all."""
    found: list[Target] = []
    try:
        for name in names:
            found.append(target_of(name, {}, "", settings.scrape_tenant))
        for file in files:
            if not file.is_file() and "*" not in str(file):
                raise UserError(f"{file}: no such file")
        use = files or (settings.targets_files if configured else ())
        return found + read_files(use, settings.scrape_tenant)
    except ValueError as error:
        raise UserError(str(error)) from None
    except DiscoveryError as error:
        raise UserError(*str(error).splitlines()) from None


def _saved(path: Path, catalogue: Catalogue) -> Checked:
    mapper = Mapper(
        catalogue, Target(path.as_uri() if path.is_absolute() else str(path), path.name)
    )
    try:
        return _told(str(path), read_body(path.read_bytes(), mapper, catalogue), catalogue)
    except (ScrapeError, OSError) as error:
        return Checked(str(path), failure=str(error))


async def _ask(targets: Sequence[Target], catalogue: Catalogue, bounds: Bounds) -> list[Checked]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(target: Target) -> Checked:
        async with limit:
            try:
                mapper = Mapper(catalogue, target)
                reading = await read_target(client, target.url, mapper, catalogue, bounds)
            except ScrapeError as error:
                return Checked(target.instance, failure=str(error))
            return _told(target.instance, reading, catalogue)

    async with new_client(_AT_ONCE) as client:
        return list(await asyncio.gather(*map(one, targets)))


def _told(name: str, reading: Reading, catalogue: Catalogue) -> Checked:
    findings = survey(catalogue, reading.mapped)
    sources = tuple(sorted(reading.mapped.sources))
    failure = ""
    if not sources:
        count = reading.scanned.lines
        failure = f"none of its {count:,} samples has a known name: see `tailburn signals list`"
    return Checked(name, findings, sources, reading.complaint, failure, reading.scanned.lines)


def _rows(target: Checked) -> Iterable[dict[str, Any]]:
    if target.failure:
        yield {"target": target.name, "signal": None, "standing": "down", "note": target.failure}
    for finding in target.findings:
        yield {
            "target": target.name,
            "signal": finding.signal.name,
            "standing": str(finding.standing),
            "source": finding.source or None,
            "metric": finding.through or None,
            "samples": finding.samples,
            "unit": finding.signal.unit,
            "needed": finding.signal.needed,
            "blinds": None if finding.is_there else finding.signal.blinds,
            "step": finding.signal.step,
            "note": finding.note or None,
        }


def _print(target: Checked, every: bool) -> None:
    told = ", ".join(target.sources) or "nothing known"
    stdout().print(harmless(f"{target.name}: {target.failure or told}"))
    if target.complaint:
        stdout().print(harmless(f"  {target.complaint}"))
    if not target.sources:
        return
    drawn = table(["step", "signal", "", "under the name", "beware, or what is blind"], ["samples"])
    hidden = 0
    for finding in sorted(target.findings, key=lambda f: f.signal.step):
        if finding.standing is Standing.NEVER and not (every or finding.signal.needed):
            hidden += 1
            continue
        blind = finding.note if finding.is_there else f"blind: {finding.signal.blinds}"
        name = finding.through if finding.is_there else _hint(finding)
        style = "bold red" if finding.blinds_walk else _STYLES[finding.standing]
        drawn.add_row(
            plain(finding.step),
            plain(finding.signal.name + (" *" if finding.signal.needed else "")),
            plain(finding.standing, style),
            plain(name),
            plain(blind),
            plain(f"{finding.samples:,}" if finding.samples else ""),
        )
    draw(drawn)
    if hidden:
        stdout().print(f"{hidden} more that {told} never tells: --all shows them\n")


def _hint(finding: Finding) -> str:
    return f"would be {finding.through}" if finding.through else ""


def _print_everywhere(catalogue: Catalogue, checked: Sequence[Checked]) -> None:
    """What the walk needs and no target tells: of whole kinds of targets, such as GPUs."""
    told = {f.signal.name: True for target in checked for f in target.findings if f.is_there}
    roles = {catalogue.source(s).role for target in checked for s in target.sources}
    missing = [s for s in untold(catalogue, told) if s.role not in roles]
    if not missing or not roles:
        return
    by_role: dict[str, list[str]] = {}
    for signal in missing:
        by_role.setdefault(signal.role, []).append(signal.name)
    stdout().print("* the walk needs it. No target at all is a")
    for role, names in by_role.items():
        stdout().print(f"  {role.replace('_', ' ')}: nobody tells {', '.join(names)}")
