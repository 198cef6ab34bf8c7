"""What scrapes are made of: families with their types, keys of labels, and bounds."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_SERIES = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+\S+")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclass
class Shape:
    """One family. `keys`: sets of label keys that its series have; `bounds` as printed."""

    kind: str = "untyped"
    help: str | None = None
    keys: set[frozenset[str]] = field(default_factory=set)
    bounds: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    """Keys of labels as the first series prints them, and the endings of its parts."""


def shapes(texts: Iterable[str]) -> dict[str, Shape]:
    """The families of some scrapes of one target, together."""
    found: dict[str, Shape] = {}
    for text in texts:
        for line in text.splitlines():
            if line.startswith("# "):
                _told(found, line)
            elif line and line[0] != "#":
                _add(found, line)
    return found


def _told(found: dict[str, Shape], line: str) -> None:
    word, name, *rest = line[2:].split(" ", 2)
    if word == "TYPE":
        found.setdefault(name, Shape()).kind = rest[0]
    elif word == "HELP":
        found.setdefault(name, Shape()).help = rest[0] if rest else ""


def _add(found: dict[str, Shape], line: str) -> None:
    match = _SERIES.match(line)
    assert match, line
    name, part = match[1], ""
    for ending in ("_bucket", "_sum", "_count"):
        whole = name.removesuffix(ending)
        if whole != name and found.get(whole, Shape()).kind in ("histogram", "summary"):
            name, part = whole, ending
    labels = _LABEL.findall(match[2] or "")
    shape = found.setdefault(name, Shape())
    keys = [key for key, _ in labels]
    if part == "_bucket":
        bound = dict(labels)["le"]
        if bound not in shape.bounds:
            shape.bounds.append(bound)
        keys.remove("le")
    if "quantile" not in keys:
        shape.keys.add(frozenset(keys))
    shape.order = shape.order or [key for key, _ in labels]


def captured(folder: Path, pattern: str) -> dict[str, Shape]:
    """The families of all scrapes in a folder whose names fit."""
    paths = sorted(folder.glob(pattern))
    assert paths, f"{folder}: nothing like {pattern}"
    return shapes(path.read_text() for path in paths)
