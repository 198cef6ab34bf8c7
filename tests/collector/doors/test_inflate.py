"""Decompression in steps: judged by gzip and zstd, bounded for streams made to hurt."""

import asyncio
import gzip
import struct
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from tailburn.collector.doors.inflate import MAX_MEMBERS, STEP_BYTES, Inflater
from tailburn.collector.doors.limits import Body, Budget
from tailburn.collector.errors import BadBody, Busy, TooLarge

MIB = 1 << 20


def deflate(encoding: str, data: bytes) -> bytes:
    return gzip.compress(data, 6) if encoding == "gzip" else zstd.compress(data, 3)


def inflate(encoding: str, *chunks: bytes, limit_bytes: int = 64 * MIB) -> bytes:
    body = Body(limit_bytes, Budget(limit_bytes * 2))

    async def run() -> None:
        inflater = Inflater(encoding.encode())
        for chunk in chunks:
            await inflater.feed(chunk, body)
        inflater.finish()

    asyncio.run(run())
    return bytes(body.data)


both = pytest.mark.parametrize("encoding", ["gzip", "zstd"])


@settings(max_examples=60, deadline=None)
@given(
    encoding=st.sampled_from(["gzip", "zstd"]),
    members=st.lists(st.binary(max_size=2000), min_size=1, max_size=4),
    repeat=st.sampled_from([1, 3000]),
    cuts=st.lists(st.integers(min_value=0, max_value=10_000), max_size=6),
)
def test_any_members_in_any_chunks_unpack_to_what_was_packed(
    encoding: str, members: list[bytes], repeat: int, cuts: list[int]
) -> None:
    packed = b"".join(deflate(encoding, m * repeat) for m in members)
    edges = [0, *sorted(c % (len(packed) + 1) for c in cuts), len(packed)]
    chunks = [packed[a:b] for a, b in zip(edges, edges[1:], strict=False)]

    assert inflate(encoding, *chunks) == b"".join(m * repeat for m in members)


@both
def test_a_stream_cut_anywhere_is_refused(encoding: str) -> None:
    packed = deflate(encoding, bytes(range(256)) * 3)

    for n in range(len(packed)):
        with pytest.raises(BadBody, match="cut short"):
            inflate(encoding, packed[:n])


@both
def test_a_stream_damaged_anywhere_never_passes_for_something_else(encoding: str) -> None:
    data = b"the same text again and again " * 40
    packed = deflate(encoding, data) if encoding == "gzip" else _zstd_with_checksum(data)

    for i in range(len(packed)):
        damaged = packed[:i] + bytes([packed[i] ^ 0x10]) + packed[i + 1 :]
        with suppress(BadBody):
            assert inflate(encoding, damaged) == data  # a flag or a time stamp of the header


def _zstd_with_checksum(data: bytes) -> bytes:
    return zstd.compress(data, options={int(zstd.CompressionParameter.checksum_flag): 1})


@both
def test_a_bomb_costs_the_limit_and_one_step(encoding: str) -> None:
    bomb = deflate(encoding, bytes(64 * MIB))
    limit = 8 * MIB

    tracemalloc.start()
    with pytest.raises(TooLarge, match=f"over {limit} bytes after decompression"):
        inflate(encoding, bomb, limit_bytes=limit)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # A bytearray takes an eighth more than asked; a step lives twice while it is put together.
    assert peak_bytes < limit * 9 / 8 + 3 * STEP_BYTES


@both
def test_a_body_of_exactly_the_limit_passes_and_one_byte_more_does_not(encoding: str) -> None:
    limit = 3 * MIB

    assert len(inflate(encoding, deflate(encoding, bytes(limit)), limit_bytes=limit)) == limit
    with pytest.raises(TooLarge):
        inflate(encoding, deflate(encoding, bytes(limit + 1)), limit_bytes=limit)


def test_a_zstd_window_of_512_mib_is_refused_before_it_is_allocated() -> None:
    header = struct.pack("<IBB", 0xFD2FB528, 0, 19 << 3) + b"\x01\x00\x00"
    assert len(header) == 9

    with pytest.raises(BadBody, match="too much memory"):
        inflate("zstd", header)


def test_a_zstd_window_of_8_mib_is_taken() -> None:
    data = bytes(range(256)) * 64
    compressor = zstd.ZstdCompressor(options={int(zstd.CompressionParameter.window_log): 23})
    packed = compressor.compress(data) + compressor.flush()

    assert inflate("zstd", packed) == data


def test_a_forged_gzip_length_is_refused() -> None:
    packed = gzip.compress(b"x" * 1000)

    for forged_bytes in (0, 1, 999, 1001, 2**32 - 1):
        with pytest.raises(BadBody, match="gzip stream is broken"):
            inflate("gzip", packed[:-4] + struct.pack("<I", forged_bytes))


def test_a_stream_of_many_tiny_members_is_refused() -> None:
    tiny = gzip.compress(b"")

    assert inflate("gzip", tiny * MAX_MEMBERS) == b""
    with pytest.raises(BadBody, match="over 1000 members"):
        inflate("gzip", tiny * (MAX_MEMBERS + 1))


@pytest.mark.parametrize(
    "stream",
    [zlib.compress(b"zlib, not gzip"), b"\xff\xff\xff\xff\x0f", b"plain text", bytes(64)],
    ids=["zlib", "a snappy prefix of 4 GiB", "text", "zeros"],
)
@both
def test_what_is_no_such_stream_is_refused(encoding: str, stream: bytes) -> None:
    with pytest.raises(BadBody):
        inflate(encoding, stream)


@both
def test_what_follows_the_stream_must_be_another_one(encoding: str) -> None:
    with pytest.raises(BadBody):
        inflate(encoding, deflate(encoding, b"data") + b"trailing")


def test_a_body_is_charged_to_the_budget_until_it_is_released() -> None:
    budget = Budget(100)
    first, second = Body(80, budget), Body(80, budget)

    first.append(b"x" * 60)
    with pytest.raises(Busy, match="60 of 100 bytes are in flight, 50 more don't fit"):
        second.append(b"y" * 50)
    second.append(b"y" * 40)
    first.release()
    second.append(b"y" * 40)

    assert budget.used_bytes == 80
    second.release()
    second.release()
    assert budget.used_bytes == 0


@pytest.mark.parametrize(("encoding", "window_bytes"), [("gzip", 32 << 10), ("zstd", 8 * MIB)])
def test_the_window_is_charged_beside_the_body_as_it_fills(
    encoding: str, window_bytes: int
) -> None:
    def charged_bytes(data_bytes: int) -> int:
        budget = Budget(64 * MIB)
        packed = deflate(encoding, bytes(data_bytes))
        asyncio.run(Inflater(encoding.encode()).feed(packed, Body(64 * MIB, budget)))
        return budget.used_bytes

    assert charged_bytes(1000) == 2000
    assert charged_bytes(20 * MIB) == 20 * MIB + window_bytes


def test_a_large_stream_lets_others_run_between_its_steps() -> None:
    ran = 0

    async def other() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    async def run() -> None:
        beside = asyncio.create_task(other())
        body = Body(64 * MIB, Budget(64 * MIB))
        await Inflater(b"gzip").feed(gzip.compress(bytes(32 * MIB)), body)
        beside.cancel()

    asyncio.run(run())
    assert ran >= 31
