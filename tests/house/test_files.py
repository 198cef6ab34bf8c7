"""What holds for every file: its size, and that it knows of no machine but the reader's."""

import re
from ast import get_docstring, parse
from pathlib import Path
from typing import Protocol

LINES = 500
# A path into somebody's machine; `/var/lib/...` and the like in docs are the reader's own.
MACHINE_PATH = re.compile(r"(?<![\w.:~])/(work|root|home|Users)/\w")
# The notes a change was made from: a reader has none of them.
NOTES = re.compile(r"\bissue \d|shared/(design|style|reference|prototypes)|\bthe brief\b", re.I)
BINARY = {".bin", ".gz", ".parquet", ".png", ".xz", ".zst"}


class House(Protocol):
    root: Path
    folders: tuple[str, ...]

    def tracked(self, *patterns: str) -> list[Path]: ...


def _text(house: House) -> list[tuple[str, str]]:
    """Name and text of the tracked files, but for this one, which names what it forbids."""
    paths = [p for p in house.tracked() if p.suffix not in BINARY and p != Path(__file__)]
    return [(str(p.relative_to(house.root)), p.read_text("utf-8")) for p in paths]


def test_no_source_file_is_longer_than_a_reader_can_hold(house: House) -> None:
    lengths = {str(p): len(p.read_text("utf-8").splitlines()) for p in house.tracked("*.py")}
    assert lengths
    assert not {name: n for name, n in lengths.items() if n > LINES}


def test_no_path_of_one_machine_is_written_down(house: House) -> None:
    assert not [name for name, text in _text(house) if MACHINE_PATH.search(text)]


def test_the_project_speaks_of_itself_alone(house: House) -> None:
    assert not [name for name, text in _text(house) if NOTES.search(text)]


def test_every_folder_says_what_it_is_and_is_typed(house: House) -> None:
    for folder in house.folders:
        init = house.root / folder / "__init__.py"
        assert get_docstring(parse(init.read_text())), f"{folder} does not say what it is"
        assert (house.root / folder / "py.typed").is_file()
