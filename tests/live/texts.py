"""Every byte of a store as somebody with the right tools would read it."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from tailburn.collector.log import LogReader


def files_with(store: Path, word: str) -> list[str]:
    """The files of a store that hold a word: as bytes, as values, or in what is compressed."""
    sought = word.encode()
    return sorted({name for name, content in _contents(store) if sought in content})


def _contents(store: Path) -> Iterator[tuple[str, bytes]]:
    for path in store.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(store))
            yield name, path.read_bytes()
            if path.suffix == ".parquet":
                yield name, repr(pq.read_table(path).to_pylist()).encode()
    for record in LogReader(store / "log"):
        yield "log", bytes(record.body)
