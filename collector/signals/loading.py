"""Signals and sources read from data: our own file, and files of users before it.

`signals.yaml` in this folder is ours; `docs/signals.md` teaches the form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from tailburn.collector.hops.document import Document, Value
from tailburn.collector.signals.catalogue import (
    ROLES,
    Catalogue,
    Combine,
    Kind,
    Reading,
    Signal,
    Source,
)
from tailburn.collector.signals.readings import number, read_labels, read_reading
from tailburn.engine.problems import BadFiles, Problem, one_of

SHIPPED: Final = Path(__file__).parent / "signals.yaml"
_WANTED: Final = "want signals or sources, see docs/signals.md"


@dataclass
class _Draft:
    """What the files read so far add up to."""

    signals: dict[str, Signal] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    ours: Sequence[Source] = ()  # those that a user's file may add to


def load_catalogue(user_files: Sequence[Path] = ()) -> Catalogue:
    """Our signals and sources, after those of the users' files in the order given.

    A source of ours in a user's file adds its readings before ours. Raises `BadFiles` with
    every problem of every file.
    """
    if not user_files:
        return _shipped_catalogue()
    ours, theirs = _shipped(), _Draft()
    theirs.signals, theirs.ours = dict(ours.signals), ours.sources
    for file in user_files:
        _read_file(file, theirs)
    if theirs.problems:
        raise BadFiles(theirs.problems)
    return Catalogue(theirs.signals, _merged(theirs.sources, ours.sources))


@cache
def _shipped_catalogue() -> Catalogue:
    draft = _shipped()
    if draft.problems:
        raise BadFiles(draft.problems)
    return Catalogue(draft.signals, draft.sources)


@cache
def _shipped() -> _Draft:
    """What our own file says; not to be changed."""
    draft = _Draft()
    _read_file(SHIPPED, draft)
    return draft


def _merged(theirs: Sequence[Source], ours: Sequence[Source]) -> list[Source]:
    """Sources by name, in order; the readings of the earlier of a name come first."""
    merged: dict[str, Source] = {}
    for source in (*theirs, *ours):
        before = merged.get(source.name)
        if before is None:
            merged[source.name] = source
        else:
            readings = (*before.readings, *source.readings)
            versions = before.versions or source.versions
            merged[source.name] = replace(before, readings=readings, versions=versions)
    return list(merged.values())


def _read_file(file: Path, draft: _Draft) -> None:
    document = Document(file, {}, _WANTED)
    top = document.read()
    if top is not None:
        parts = top.mapping(("signals", "sources"))
        if not parts and not document.problems:
            top.fault(_WANTED)
        if "signals" in parts:
            _read_signals(parts["signals"], draft, file)
        if "sources" in parts:
            for item in parts["sources"].items():
                _read_source(item, draft, file)
    draft.problems += document.problems


_SIGNAL: Final = ("kind", "unit", "role", "step", "needed", "combine", "or", "about", "blinds")


def _read_signals(value: Value, draft: _Draft, file: Path) -> None:
    found: dict[str, tuple[Signal, Value | None]] = {}
    for name, given in value.entries():
        if name in draft.signals:
            before = draft.signals[name]
            given.fault(f"signal {name} is already at {before.file.name}:{before.line}")
            continue
        signal = _read_signal(name, given, file)
        if signal is not None:
            draft.signals[name] = signal
            found[name] = signal, given.mapping(_SIGNAL).get("or")
    for name, (signal, expression) in found.items():
        if expression is not None:
            derived = _read_derived(expression, draft.signals)
            draft.signals[name] = replace(signal, derived=derived)


def _read_signal(name: str, value: Value, file: Path) -> Signal | None:
    parts = value.mapping(_SIGNAL)
    missing = [part for part in ("kind", "unit", "role", "about") if part not in parts]
    if missing:
        value.fault(f"want {', '.join(missing)}")
        return None
    kind, role = parts["kind"].word(tuple(Kind)), parts["role"].word(ROLES)
    combine = parts["combine"].word(tuple(Combine)) if "combine" in parts else "sum"
    step = parts["step"].word(tuple("01234")) if "step" in parts else "0"
    needed = parts["needed"].flag() if "needed" in parts else False
    unit, about = parts["unit"].text(), parts["about"].text()
    blinds = parts["blinds"].text() if "blinds" in parts else about
    if kind is None or role is None or combine is None or step is None:
        return None
    if unit is None or about is None or blinds is None:
        return None
    return Signal(
        name=name,
        kind=Kind(kind),
        unit=unit,
        role=role,
        step=int(step),
        needed=bool(needed),
        combine=Combine(combine),
        about=about,
        blinds=blinds,
        derived=None,
        file=file,
        line=value.line,
    )


def _read_derived(value: Value, known: dict[str, Signal]) -> tuple[str, str, str] | None:
    words = (value.text() or "").split()
    if len(words) != 3 or words[1] not in ("-", "/", "*"):
        value.fault("want two signals with -, / or * between them")
        return None
    for name in (words[0], words[2]):
        if name not in known:
            value.fault(one_of(name, known))
            return None
    return words[0], words[1], words[2]


_SOURCE: Final = (
    "source",
    "title",
    "role",
    "versions",
    "with",
    "without",
    "blank_above",
    "spellings",
    "labels",
    "readings",
)


def _read_source(value: Value, draft: _Draft, file: Path) -> None:
    parts = value.mapping(_SOURCE)
    missing = [part for part in ("source", "readings") if part not in parts]
    if missing:
        value.fault(f"want {', '.join(missing)}")
        return
    name = parts["source"].text()
    same = next((s for s in draft.ours if s.name == name), None)
    if "role" not in parts and same is None:
        value.fault(f"want role, one of {', '.join(ROLES)}")
        return
    # What a file leaves out of a source of ours stays as it is there.
    before = same or Source(name=name or "", title=name or "", role="", file=file)
    role = parts["role"].word(ROLES) if "role" in parts else before.role
    labels = dict(before.labels)
    if "labels" in parts:
        labels |= read_labels(parts["labels"])
    readings: list[Reading] = []
    for item in parts["readings"].items():
        reading = read_reading(item, before.name, labels, draft.signals, file)
        if reading is not None:
            readings.append(reading)
    blank = number(parts["blank_above"]) if "blank_above" in parts else None
    if name is None or role is None:
        return
    title = parts["title"].text() if "title" in parts else None
    draft.sources.append(
        replace(
            before,
            title=title or before.title,
            role=role,
            versions=parts["versions"].texts() if "versions" in parts else (),
            with_=parts["with"].texts() if "with" in parts else before.with_,
            without=parts["without"].texts() if "without" in parts else before.without,
            blank_above=blank or before.blank_above,
            spellings=_spellings(parts["spellings"]) if "spellings" in parts else before.spellings,
            labels=labels,
            readings=tuple(readings),
            file=file,
        )
    )


def _spellings(value: Value) -> dict[str, tuple[str, ...]]:
    return {prefix: given.texts() for prefix, given in value.entries()}
