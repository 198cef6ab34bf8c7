"""Text of users that the captures carry on purpose, looked for in every file of a store."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from bench.captures.checks import Check, equal

PLANTED = ("zzprompt", "zzdoc", "user-007@example.invalid")


def nothing_planted(store: Path) -> Check:
    """No marker in any file of `store`, Parquet read as the values it holds."""
    files = [path for path in sorted(store.rglob("*")) if path.is_file()]
    hits = [hit for path in files for hit in _hits(path, path.relative_to(store))]
    return equal("text of users in the store", 0, len(hits), hits)


def _hits(path: Path, name: Path) -> Iterator[str]:
    contents = [path.read_bytes()]
    if path.suffix == ".parquet":
        contents.append(repr(pq.read_table(path).to_pylist()).encode())
    for marker in PLANTED:
        if any(marker.encode() in content for content in contents):
            yield f"{marker} in {name}"
