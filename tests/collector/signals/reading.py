"""A text of metrics read as the service reads it."""

import gzip
from pathlib import Path
from typing import Any

from tailburn.collector.signals.catalogue import Catalogue
from tailburn.collector.signals.exposition import Scanned, scan
from tailburn.collector.signals.loading import load_catalogue
from tailburn.collector.signals.mapper import Mapped, Mapper, signals_table
from tailburn.collector.signals.targets import Target, target_of

RECEIVED_NS = 1_796_145_000_000_000_000


def saved(name: str) -> bytes:
    """An answer of a real program."""
    return gzip.decompress((Path(__file__).parent / "scrapes" / f"{name}.prom.gz").read_bytes())


def target(**labels: str) -> Target:
    return target_of("engine-a:8000", labels, "a test", "default")


def scanned(text: str | bytes, catalogue: Catalogue | None = None) -> Scanned:
    catalogue = catalogue or load_catalogue()
    body = text.encode() if isinstance(text, str) else text
    return scan(body, catalogue.uses, catalogue.families)


def mapped(text: str | bytes, catalogue: Catalogue | None = None) -> Mapped:
    catalogue = catalogue or load_catalogue()
    return Mapper(catalogue, target()).map(scanned(text, catalogue))


def rows(
    text: str | bytes, catalogue: Catalogue | None = None, at: Target | None = None
) -> list[dict[str, Any]]:
    """Rows of the table of signals, without the one that says that the target is up."""
    catalogue = catalogue or load_catalogue()
    at = at or target()
    told = Mapper(catalogue, at).map(scanned(text, catalogue))
    table = signals_table(told, catalogue, at, RECEIVED_NS)
    return [row for row in table.to_pylist() if row["name"] != "up"]


def values(text: str | bytes, catalogue: Catalogue | None = None) -> dict[str, float]:
    """Value by `signal kind`, summed over labels and buckets."""
    found: dict[str, float] = {}
    for row in rows(text, catalogue):
        key = f"{row['name']} {row['kind']}"
        found[key] = found.get(key, 0.0) + row["value"]
    return found


def write(folder: Path, text: str) -> Path:
    file = folder / "ours.yaml"
    file.write_text(text)
    return file
