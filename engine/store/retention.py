"""Whole hours dropped when they are too old, or when a table takes too much room."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tailburn.engine.store.api import Retired
from tailburn.engine.store.keeping import Kept
from tailburn.engine.store.segments import HOUR_NS, Segment, hour_folder, hours

_NS_PER_H: Final = 3_600e9


def retire(root: Path, table: str, kept: Kept, now_ns: int) -> Retired:
    """Unlink the hours of a table that are past its bounds, oldest first.

    The hour of `now_ns` stays whatever its size.
    """
    sizes = {hour_ns: size_bytes(found) for hour_ns, found in hours(root, table)}
    gone = hours_over(sizes, kept, now_ns)
    for hour_ns in gone:
        _drop(hour_folder(root, table, hour_ns))
    return Retired(len(gone), sum(sizes[h] for h in gone))


def hours_over(sizes: dict[int, int], kept: Kept, now_ns: int) -> list[int]:
    """Hours that are too old, or too many for the bytes; `sizes` is bytes by hour."""
    over: list[int] = []
    left = sum(sizes.values())
    for hour_ns in sorted(sizes):
        past = hour_ns + HOUR_NS <= now_ns
        old = now_ns - (hour_ns + HOUR_NS) >= kept.hours * _NS_PER_H
        if past and (old or left > kept.bytes):
            over.append(hour_ns)
            left -= sizes[hour_ns]
    return over


def size_bytes(found: Iterable[Segment]) -> int:
    """What these segments take up; one that just went counts nothing."""
    return sum(_size(s.path) for s in found)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _drop(folder: Path) -> None:
    for name in os.listdir(folder):
        (folder / name).unlink()
    folder.rmdir()
    if not os.listdir(folder.parent):
        folder.parent.rmdir()
