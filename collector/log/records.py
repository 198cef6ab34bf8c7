"""How a record and a segment lie on disk.

    segment = segment header, record, record, ...
    segment header (32 bytes) = magic, sync, first position, CRC-32C, padding
    record = record header (48 bytes), tenant, stored body
    record header = sync, length of the stored body, CRC-32C of tenant and stored body,
        position, received_ns, kind, codec, length of the tenant, length of the body,
        spans rejected before, CRC-32C of the header so far

All integers are little-endian. `sync` is random and the same in one segment only: no sender
can plant a record inside a body, and what an earlier file left on the disk is never taken
for one. The header has a checksum of its own, so a damaged body does not hide what follows.
"""

import secrets
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import google_crc32c

from tailburn.collector.compression import zstd

MAGIC: Final = b"tburnwal"
SYNC_BYTES: Final = 8
SEGMENT_HEADER_BYTES: Final = 32

_SEGMENT: Final = struct.Struct("<8s8sQ")
_RECORD: Final = struct.Struct("<8sIIQqBBHII")
_CRC: Final = struct.Struct("<I")
RECORD_HEADER_BYTES: Final = _RECORD.size + _CRC.size

# Measured on 512-span bodies: level -5 writes a fifth of the bytes for 0.26 us of CPU a span;
# under 1 KiB a body is hardly smaller.
_ZSTD_LEVEL: Final = -5
_MIN_COMPRESSED_BYTES: Final = 1024


class Kind(IntEnum):
    """What a record's body is."""

    TICK = 0  # no body: time has come to received_ns
    TRACES = 1  # ExportTraceServiceRequest, protobuf, blanked
    METRICS = 2  # ExportMetricsServiceRequest, protobuf
    METRICS_JSON = 3
    CLOSE = 4  # no body: time has come to received_ns, and what is open is closed
    SIGNALS = 5  # rows of engine.schema.SIGNALS that were read here, as an Arrow stream


class Codec(IntEnum):
    """How a body is stored."""

    RAW = 0
    ZSTD = 1


@dataclass(frozen=True)
class Entry:
    """What a record says, without its place in the log."""

    kind: Kind
    received_ns: int
    tenant: str
    body: bytes | bytearray
    rejected: int = 0  # spans that came with this body and are no longer in it


@dataclass(frozen=True)
class Record:
    """A record as read back."""

    position: int
    kind: Kind
    received_ns: int
    tenant: str
    body: bytearray
    rejected: int


@dataclass(frozen=True)
class Header:
    """A record's header that passed its own checksum. Offsets are those in the segment."""

    offset: int
    stored_bytes: int
    crc: int
    position: int
    received_ns: int
    kind: int
    codec: int
    tenant_bytes: int
    body_bytes: int
    rejected: int

    @property
    def start(self) -> int:
        """Where tenant and body begin."""
        return self.offset + RECORD_HEADER_BYTES

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.start + self.tenant_bytes + self.stored_bytes


class Encoder:
    """Turns entries into the bytes of records. For one thread."""

    def __init__(self) -> None:
        self._zstd = zstd.ZstdCompressor(level=_ZSTD_LEVEL)

    def record(self, entry: Entry, position: int, sync: bytes, compress: bool) -> list[bytes]:
        """The record in two pieces, the second maybe empty.

        `compress` is a wish: a body that would not get smaller is stored as it is. Raises
        `ValueError` for a tenant of 64 KiB or more.
        """
        codec, stored = self._stored(entry.body, compress)
        tenant = entry.tenant.encode()
        if len(tenant) > 0xFFFF:
            raise ValueError(f"a tenant's name is at most 65,535 bytes, got {len(tenant):,}")
        crc = google_crc32c.extend(google_crc32c.value(tenant), stored)
        head = _RECORD.pack(
            sync,
            len(stored),
            crc,
            position,
            entry.received_ns,
            entry.kind,
            codec,
            len(tenant),
            len(entry.body),
            entry.rejected,
        )
        return [head + _CRC.pack(google_crc32c.value(head)) + tenant, stored]

    def _stored(self, body: bytes | bytearray, compress: bool) -> tuple[Codec, bytes]:
        if compress and len(body) >= _MIN_COMPRESSED_BYTES:
            smaller = self._zstd.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)
            if len(smaller) < len(body):
                return Codec.ZSTD, smaller
        return Codec.RAW, bytes(body)


def new_sync() -> bytes:
    """A mark for the records of a new segment."""
    return secrets.token_bytes(SYNC_BYTES)


def segment_header(first_position: int, sync: bytes) -> bytes:
    """The bytes a segment begins with."""
    head = _SEGMENT.pack(MAGIC, sync, first_position)
    return (head + _CRC.pack(google_crc32c.value(head))).ljust(SEGMENT_HEADER_BYTES, b"\0")


def sync_of(data: bytes) -> bytes | None:
    """The sync mark of a segment: its header's or, that being damaged, its first record's."""
    if len(data) < SEGMENT_HEADER_BYTES:
        return None
    head = data[: _SEGMENT.size]
    magic, sync, _ = _SEGMENT.unpack(head)
    if magic == MAGIC and data[_SEGMENT.size :][: _CRC.size] == _CRC.pack(
        google_crc32c.value(head)
    ):
        return bytes(sync)
    sync = data[SEGMENT_HEADER_BYTES:][:SYNC_BYTES]
    return sync if header_at(data, SEGMENT_HEADER_BYTES, sync) else None


def header_at(data: bytes, offset: int, sync: bytes) -> Header | None:
    """The record header that begins at `offset`; None where there is none or it is damaged."""
    head = data[offset : offset + _RECORD.size]
    after = offset + _RECORD.size
    if len(head) < _RECORD.size or not head.startswith(sync):
        return None
    if data[after : after + _CRC.size] != _CRC.pack(google_crc32c.value(head)):
        return None
    fields = _RECORD.unpack(head)[1:]
    return Header(offset, *fields)


def is_whole(data: bytes, header: Header) -> bool:
    """Whether tenant and body are all there and as written."""
    content = data[header.start : header.end]
    return len(content) == header.end - header.start and google_crc32c.value(content) == header.crc


def record_at(data: bytes, header: Header) -> Record:
    """The record of a header that `is_whole`."""
    body_start = header.start + header.tenant_bytes
    stored = data[body_start : header.end]
    if header.codec == Codec.ZSTD:
        # The header's own checksum vouches for the length, so this can't be made to swell.
        stored = zstd.ZstdDecompressor().decompress(stored, header.body_bytes)
    return Record(
        position=header.position,
        kind=Kind(header.kind),
        received_ns=header.received_ns,
        tenant=data[header.start : body_start].decode(),
        body=bytearray(stored),
        rejected=header.rejected,
    )
