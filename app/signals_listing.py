"""The signals there are, and under which names programs tell them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tailburn.app.parts import catalogue_of
from tailburn.app.settings import Settings
from tailburn.app.terminal.output import draw, json_lines
from tailburn.app.terminal.tables import table
from tailburn.app.terminal.text import plain
from tailburn.collector.signals.catalogue import STEPS, Catalogue, Reading


def list_all(settings: Settings, files: Sequence[Path], json: bool) -> None:
    """One line per signal."""
    rows = list(_signals(catalogue_of(settings, files)))
    if json:
        json_lines(rows)
        return
    drawn = table(["step", "signal", "unit", "kind", "told by", "without it unseen"])
    for row in rows:
        name = row["signal"] + (" *" if row["needed"] else "")
        step = f"{row['step']} {STEPS[row['step']]}"
        sources = ", ".join(row["sources"]) or row["derived"] or ""
        cells = (step, name, row["unit"], row["kind"], sources, row["blinds"])
        drawn.add_row(*map(plain, cells))
    draw(drawn)
    print("* the walk needs it")


def _signals(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for signal in catalogue.signals.values():
        sources = [s.name for s in catalogue.sources if _tells(s.readings, signal.name)]
        yield {
            "signal": signal.name,
            "kind": str(signal.kind),
            "unit": signal.unit,
            "role": signal.role,
            "step": signal.step,
            "needed": signal.needed,
            "combine": str(signal.combine),
            "derived": " ".join(signal.derived) if signal.derived else None,
            "about": signal.about,
            "blinds": signal.blinds,
            "sources": sources,
        }


def _tells(readings: Sequence[Reading], signal: str) -> bool:
    return any(reading.signal == signal for reading in readings)


def list_sources(settings: Settings, files: Sequence[Path], json: bool) -> None:
    """One line per reading: the names that programs give to signals."""
    rows = list(_readings(catalogue_of(settings, files)))
    if json:
        json_lines(rows)
        return
    drawn = table(["source", "signal", "metric", "versions", "beware"])
    for row in rows:
        since, until = row["since"], row["until"]
        versions = (f"from {since}" if since else "") + (f" to {until}" if until else "")
        cells = (row["source"], row["signal"], row["metric"], versions.strip(), row["note"])
        drawn.add_row(*map(plain, cells))
    draw(drawn)


def _readings(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    for reading in catalogue.readings:
        yield {
            "source": reading.source,
            "signal": reading.signal,
            "metric": reading.through,
            "factor": reading.factor,
            "since": reading.since,
            "until": reading.until,
            "note": reading.note,
            "file": str(reading.file.name),
            "line": reading.line,
        }
