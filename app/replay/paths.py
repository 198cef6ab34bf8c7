"""From paths to recordings in order of receive time."""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

from tailburn.app.replay.bodies import Body, bodies_in_archive, bodies_in_folder
from tailburn.app.replay.otlp_files import recordings_in_file
from tailburn.app.replay.recording import Recording, RecordingError

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_OTLP = (".json", ".jsonl", ".ndjson", ".pb", ".binpb", ".otlp", ".bin")
_COMPRESSED = (".gz", ".zst")


def recordings(paths: Iterable[Path]) -> Iterator[Recording]:
    """Every recording under the paths, ordered by receive time. Raises RecordingError.

    A folder is read as recorded bodies where it holds any, else as the OTLP files in it.
    """
    bodies: list[Body] = []
    files: list[Path] = []
    for path in paths:
        _sort_out(path, bodies, files)
    bodies.sort(key=lambda body: body.header.received_unix_ns)
    in_bodies = (r for body in bodies if (r := body.recording()) is not None)
    return heapq.merge(
        in_bodies, *map(recordings_in_file, files), key=lambda recording: recording.received_ns
    )


def _sort_out(path: Path, bodies: list[Body], files: list[Path]) -> None:
    if path.is_dir():
        found = list(bodies_in_folder(path))
        below = [] if found else sorted(p for p in path.rglob("*") if _is_otlp(p))
        if not found and not below:
            raise RecordingError(f"{path}: no recorded bodies and no OTLP files in it")
        bodies += found
        files += below
    elif path.name.endswith(_ARCHIVES):
        bodies += bodies_in_archive(path)
    elif path.exists():
        files.append(path)
    else:
        raise RecordingError(f"{path}: no such file or folder")


def _is_otlp(path: Path) -> bool:
    name = path.name
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return path.is_file() and name.endswith(_OTLP)
