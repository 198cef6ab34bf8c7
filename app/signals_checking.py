"""`tailburn signals check`: each target read once, and what it tells set against what it should."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tailburn.app.errors import UserError
from tailburn.app.parts import catalogue_of
from tailburn.app.scraping import places_of
from tailburn.app.settings import Settings
from tailburn.app.signals_reading import Checked, read_places, read_saved, read_targets
from tailburn.app.terminal.output import draw, json_lines, stdout
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import harmless, plain
from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.scrape.files import read_files
from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.survey import Finding, Standing, untold
from tailburn.collector.signals.targets import Target, target_of

_STYLES = {
    Standing.FOUND: "green",
    Standing.SILENT: "green",
    Standing.DERIVED: "green",
    Standing.MISSING: "yellow",
    Standing.NEVER: "dim",
}


@dataclass(frozen=True)
class Asked:
    """What the command line names; the settings' own targets where it names nothing."""

    targets: Sequence[str] = ()
    files: Sequence[Path] = ()
    prometheus: str | None = None
    signal_files: Sequence[Path] = ()

    def __bool__(self) -> bool:
        return bool(self.targets or self.files or self.prometheus)


def check_targets(settings: Settings, asked: Asked, every: bool, json: bool) -> bool:
    """Print what each tells; False where one can't be read or blinds the walk."""
    catalogue = catalogue_of(settings, asked.signal_files)
    checked = asyncio.run(_read(settings, asked, catalogue))
    if json:
        json_lines(row for target in checked for row in _rows(target))
    else:
        for target in checked:
            _print(target, every)
        _print_everywhere(catalogue, checked)
    return all(target.is_well for target in checked)


async def _read(settings: Settings, asked: Asked, catalogue: Catalogue) -> list[Checked]:
    """Those named on the command line; those of the settings where none is."""
    if not asked:
        places = places_of(settings, catalogue)
        if not places:
            raise UserError("no targets: name some, or a file of them with --file or targets_files")
        return await read_places(settings, places, catalogue)
    saved = [path for name in asked.targets if (path := Path(name)).is_file()]
    named = [name for name in asked.targets if Path(name) not in saved]
    targets = _targets(named, asked.files, settings.scrape_tenant)
    checked = [read_saved(path, catalogue) for path in saved]
    checked += await read_targets(targets, catalogue, settings)
    if asked.prometheus is not None:
        alone = replace(
            settings,
            signals_prometheus=asked.prometheus,
            targets_files=(),
            targets_http=(),
            targets_dns=(),
            targets_kubernetes=False,
        )
        checked += await read_places(alone, places_of(alone, catalogue), catalogue)
    return checked


def _targets(names: Iterable[str], files: Sequence[Path], tenant: str) -> list[Target]:
    try:
        found = [target_of(name, {}, "", tenant) for name in names]
        return found + read_files(files, tenant)
    except ValueError as error:
        raise UserError(str(error)) from None
    except DiscoveryError as error:
        raise UserError(*str(error).splitlines()) from None


def _rows(target: Checked) -> Iterable[dict[str, Any]]:
    if target.failure:
        yield {"target": target.name, "signal": None, "standing": "down", "note": target.failure}
    if target.complaint:
        yield {"target": target.name, "signal": None, "standing": "odd", "note": target.complaint}
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
    drawn = table(["step", "signal", "", "under the name, or what is blind without it"])
    hidden = 0
    for finding in sorted(target.findings, key=lambda f: f.signal.step):
        if finding.standing is Standing.NEVER and not (every or finding.signal.needed):
            hidden += 1
            continue
        style = "bold red" if finding.blinds_walk else _STYLES[finding.standing]
        drawn.add_row(
            plain(finding.step),
            plain(finding.signal.name + (" *" if finding.signal.needed else "")),
            plain(finding.standing, style),
            plain(_in_words(finding)),
        )
    draw(drawn)
    if hidden:
        stdout().print(f"{hidden} more that {told} never tells: --all shows them\n")


def _in_words(finding: Finding) -> str:
    if finding.is_there:
        return finding.through + (f" ({finding.note})" if finding.note else "")
    told_by = f"; {finding.through} would tell" if finding.through else ""
    return f"blind: {finding.signal.blinds}{told_by}"


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
