"""Folders (or tar archives of them) with one file per received body.

`NNNNN-http.bin` or `NNNNN-grpc.bin` holds the body byte for byte, `NNNNN-….json` beside it
what came with it: `path`, `content_type`, `content_encoding`, `received_unix_ns`.
"""

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tailburn.app.replay.inflate import inflate
from tailburn.app.replay.recording import LATEST_NS, Recording, RecordingError
from tailburn.collector.accept import Encoding, Signal

_PATHS = {
    Signal.TRACES: ("/traces", "TraceService/Export"),
    Signal.METRICS: ("/metrics", "MetricsService/Export"),
}


class Header(msgspec.Struct):
    """The file beside a body."""

    received_unix_ns: Annotated[int, msgspec.Meta(ge=0, le=LATEST_NS)]
    path: str = "/v1/traces"
    content_type: str = "application/x-protobuf"
    content_encoding: str | None = None

    @property
    def signal(self) -> Signal | None:
        """What the path says; None for a signal that this service does not take (logs)."""
        return next((s for s, names in _PATHS.items() if self.path.endswith(names)), None)

    @property
    def encoding(self) -> Encoding:
        return Encoding.JSON if "json" in self.content_type else Encoding.PROTOBUF


@dataclass(frozen=True)
class Body:
    """A body whose header is read and whose bytes are not yet."""

    place: str
    header: Header
    read: Callable[[], bytes]

    def recording(self) -> Recording | None:
        """Raises RecordingError; None for a signal that is not taken."""
        signal = self.header.signal
        if signal is None:
            return None
        compression = self.header.content_encoding
        return Recording(
            self.place,
            self.header.received_unix_ns,
            signal,
            self.header.encoding,
            inflate(self.read(), compression, self.place),
            compression,
        )


def bodies_in_folder(folder: Path) -> Iterator[Body]:
    """The bodies anywhere below a folder, by name."""
    for path in sorted(folder.rglob("*.bin")):
        beside = path.with_suffix(".json")
        if beside.is_file():
            yield Body(str(path), _header(beside.read_bytes(), str(beside)), path.read_bytes)


def bodies_in_archive(path: Path) -> Iterator[Body]:
    """The bodies in a tar archive, compressed or not. Raises RecordingError."""
    try:
        with tarfile.open(path) as archive:
            files = {m.name: _contents(archive, m) for m in archive if m.isfile()}
    except (tarfile.TarError, OSError, EOFError) as error:
        raise RecordingError(f"{path}: not a tar archive: {error}") from None
    named = [n for n in files if n.endswith(".bin") and _beside(n) in files]
    if not named:
        raise RecordingError(f"{path}: no recorded bodies in it")
    for name in sorted(named):
        beside = _beside(name)
        place = f"{path}/{name}"
        yield Body(place, _header(files[beside], f"{path}/{beside}"), _constant(files[name]))


def _beside(name: str) -> str:
    return name.removesuffix(".bin") + ".json"


def _contents(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None, "a regular file has contents"
    return stream.read()


def _constant(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _header(data: bytes, place: str) -> Header:
    try:
        return msgspec.json.decode(data, type=Header)
    except msgspec.MsgspecError as error:
        raise RecordingError(f"{place}: {error}") from None
